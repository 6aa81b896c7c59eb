-- Does what multi.lua does, in less time, for two or three checks: their laws, and which of them
-- share a key, are known when it is composed; see nest.go. There is no record, and nothing was
-- refused elsewhere. ARGV[1] goes on with the copies asked for, where in it each of the checks
-- begins, and the checks.
--
-- Each check is a block inside that of the check after it. So what was found out about each is
-- still in its locals, and in no table, when all have been looked at; then the blocks are left,
-- the first check first. What each is told is kept in numbered variables, for one reply.

--:start
local arg = ARGV[1]
local granted, some = copies

--:look
-- i is its number, and from where it begins.
local _, flags, key, id, cost, from = unpack('<BBI2c9d', arg, from)
local unit, k, advisory, reserved, lease = cost > 0 and cost or 1, 0, flags % 2, 0, 0
if flags > 1 then reserved, from = unpack('<d', arg, from) end -- so many are to remain
if flags > 3 then lease, from = unpack('<d', arg, from) end -- for so long what is taken may be used
--<own>
--<box find>
--<fit>
if moved then return pack('<ddddd', tag, -2, i, moved, tag - 2 + i + moved) end
if k < granted and advisory == 0 then granted = k end

--:own
-- Of the checks that share a key, the last has the box. last is set if it is to be written, see
-- box.lua; stale: what is in Redis is newer.
local box, last, stale = call('GET', KEYS[key]) or ''

--:decide
if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end
some = granted > 0 and granted < copies

--:charge
local fit = k
if granted < k then k = granted end
local left, reset, resett, delay, delayt, later, latert, state, till = 0, 0, 0, 0, 0, 0, 0
local short = some and fit == granted and advisory == 0
if granted > 0 or fit == 0 and advisory == 0 then
  --<take>
  if state then
    --<put>
  end
  if k == 0 then delay, delayt = later, latert end
  fit = k
end
if some and not short then later, latert = -1, 0 end

--:put
if at == 17 and #box == 16 + #state and till <= unpack('<I5', box, 10) * 1000000 then
  call('SETRANGE', KEYS[key], '16', state) -- as in box.lua
else
  --<box place>
  --<box write>
end

--:share
if last then -- it is written anyway
  --<box find>
  --<box place>
else
  local ends, size = 0, -1
  if at then ends, size = unpack('<I5I2', box, at - 7) end
  if size == #state and till <= ends * 1000000 and not kin then
    call('SETRANGE', KEYS[key], at == 17 and '16' or at == 60 and '59' or at - 1, state)
    stale = true
  else
    if stale then box = call('GET', KEYS[key]) end
    --<box merge>
  end
end

--:leave
if last then
  --<box write>
end
