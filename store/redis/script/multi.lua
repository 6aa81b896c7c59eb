-- Decides several checks, and grants as many whole copies of them as all enforcing ones have
-- room for, or nothing. ARGV[1] goes on with the copies asked for, how long a record of
-- the charge is to be kept, in µs, and 1 if the request was refused elsewhere: then nothing
-- is granted; if there are leases, their name is the end of it. ARGV[2] and on are the
-- checks; with a record, what it is to say comes last, and its key last in KEYS.
--
-- The reply is that of one.lua, with six or eight numbers for each check.
local _, _, copies, ttl, refused = unpack('<ddddB', ARGV[1])
local checks = {}
local granted = refused == 1 and 0 or copies
for i = 2, ttl > 0 and #ARGV - 1 or #ARGV do
  local arg = ARGV[i]
  local kind, flags, key, id, cost, from = unpack('<BBI2c9d', arg)
  local unit, k, advisory, reserved, saved = cost > 0 and cost or 1, 0, flags % 2, 0
  local lease, befores = 0, false
  if flags > 1 then reserved, from = unpack('<d', arg, from) end -- so many are to remain
  if flags > 3 then lease, from = unpack('<d', arg, from) end -- for so long what is taken may be used
  if flags > 7 then -- the checks of the buckets that it follows
    local n
    n, from = unpack('<d', arg, from)
    befores = {}
    for j = 1, n do befores[j], from = unpack('<d', arg, from) end
  end
  local box = kind < 5 and (boxes[key] or call('GET', KEYS[key])) or ''
  boxes[key] = box
  --<box find>
  --<fit>
  if moved then return pack('<ddddd', tag, -2, i - 1, moved, tag - 2 + (i - 1) + moved) end
  if k < granted and advisory == 0 then granted = k end
  checks[i - 1] = {kind, advisory, key, id, cost, unit, k, reserved, befores, saved}
end
if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end

local some = granted > 0 and granted < copies
local reply, sum = pack('<ddd', tag, granted, now), tag + granted + now
local charged, wait, waitt = '', nil, 0
for i = 1, #checks do
  local kind, advisory, key, id, cost, unit, fit, reserved, befores, saved = spread(checks[i])
  local k, asked = fit < granted and fit or granted, advisory == 1 and granted or copies
  local left, reset, resett, delay, delayt, later, latert, state, till = 0, 0, 0, 0, 0, 0, 0
  local short = some and fit == granted and advisory == 0
  if granted > 0 or fit == 0 and advisory == 0 then
    --<take>
    if befores and cost > 0 then
      --<follow>
    end
    if state then
      local box, last = boxes[key], lasts[key]
      --<box find>
      --<box place>
      boxes[key], lasts[key] = box, last
    end
    if k == 0 then delay, delayt = later, latert end
    fit = k
  elseif advisory == 0 then
    --<refused>
  end
  reply = reply .. pack('<dddddd', fit, left, reset, resett, delay, delayt)
  sum = sum + fit + left + reset + resett + delay + delayt
  if some then
    if not short then later, latert = -1, 0 end
    reply = reply .. pack('<dd', later, latert)
    sum = sum + later + latert
  end
  if ttl > 0 then
    charged = charged .. (k > 0 and '1' or '0')
    -- Of several turns the first: in a leaky bucket, one that is named too late would free another's.
    if advisory == 0 and kind == 1 and (not wait or (delay - wait) * 1024 + delayt - waitt < 0) then
      wait, waitt = delay, delayt
    end
  end
end
--<box all>
if ttl > 0 and granted > 0 then
  -- When it ends, the receipt in µs and ticks, when a turn that was booked comes, who paid.
  call('SETEX', KEYS[#KEYS], floor(ttl / 1000000) + 1 + grace,
    pack('<dddddI2', now + ttl, now, 0, wait or 0, waitt, #checks) .. charged .. ARGV[#ARGV])
end
return reply .. pack('<d', sum)
