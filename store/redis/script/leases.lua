-- concurrency, as internal/algo/leases.go has it: slots in use, each on a lease. The
-- leases are a ZSET of its own: the name of each, and the µs at which it ends. A name is
-- the 16 bytes that whoever takes it has chosen, the last eight of them a number that
-- copies count up from, and which slot of the copy it is.
--
-- A name that is given back before it was taken is kept for one lease, below 0: at minus
-- the µs at which that ends. Whoever takes it then comes too late.
--
-- Nodes of the format before named leases by the instant, in decimals. They count here as
-- well, and are renewed and given back by their own nodes.

--:help
-- The name of what is taken, by the scripts that take.
local name = sub(ARGV[1], -16)

local function text(us) return string.format('%.0f', us) end

local function member(name, copy, slot)
  local low, high = unpack('<I4I4', name, 9)
  low = low + copy
  if low >= 4294967296 then low, high = low - 4294967296, (high + 1) % 4294967296 end
  return sub(name, 1, 8) .. pack('<I4I4I4', low, high, slot)
end

local function expire(key, last)
  call('EXPIRE', KEYS[key], floor(last / 1000000) + 1 - second + grace)
end

-- holds is how many slots are held under a name.
local function holds(key, name)
  local n = 0
  while true do
    local ends = call('ZSCORE', KEYS[key], member(name, 0, n))
    if not ends or tonumber(ends) <= now then return n end
    n = n + 1
  end
end

-- mark keeps a name that was given back before it was taken. Of more than 1024 the one
-- that ends first is forgotten.
local function mark(key, name, ends)
  local marks = call('ZCOUNT', KEYS[key], '-inf', '(0')
  if marks >= 1024 then
    call('ZREM', KEYS[key], call('ZRANGE', KEYS[key], marks - 1, marks - 1)[1])
  end
  call('ZADD', KEYS[key], text(-ends), member(name, 0, 0))
  expire(key, ends)
end

--:vars
slots, lease, held, last

--:advance
-- held leases have not ended, the last of them ends at last. One that ends later than
-- any can is cut to a full one: the clock was set back.
slots, lease = unpack('<dd', arg, from)
held, last = 0, now
local latest = call('ZRANGE', KEYS[key], -1, -1, 'WITHSCORES')[2]
if latest and tonumber(latest) > now then
  last = tonumber(latest)
  if last > now + lease then
    last = now + lease
    for _, long in ipairs(call('ZRANGEBYSCORE', KEYS[key], '(' .. text(last), '+inf')) do
      call('ZADD', KEYS[key], text(last), long)
    end
    expire(key, last)
  end
  held = call('ZCOUNT', KEYS[key], '(' .. text(now), '+inf')
end

--:fit
k = fits(slots - reserved - held, cost, unit, copies)
if cost > 0 then
  for copy = 0, k - 1 do
    if call('ZSCORE', KEYS[key], member(name, copy, 0)) then
      k = copy
      break
    end
  end
end

--:take
local n = k * cost
if n > 0 then
  last = now + lease
  call('ZREMRANGEBYSCORE', KEYS[key], text(-now), text(now))
  for i = 0, n - 1 do
    call('ZADD', KEYS[key], text(last), member(name, floor(i / cost), i % cost))
  end
  expire(key, last)
end
held = held + n
left = held < slots - reserved and slots - reserved - held or 0
reset = last - now
if (k == 0 or short) and unit + reserved <= slots then
  local must = held + unit + reserved - slots
  if must > 0 then -- otherwise it came too late
    later = call('ZRANGEBYSCORE', KEYS[key], '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', must - 1, 1)[2] - now
  end
end

--:back
local name = sub(arg, from + 16, from + 31)
local found = holds(key, name)
for i = found - 1, 0, -1 do
  if n == 0 then break end
  call('ZREM', KEYS[key], member(name, 0, i))
  n = n - 1
end
if found == 0 then mark(key, name, now + lease) end

--:force
-- A slot cannot be taken unasked.

--:renew
local name = sub(arg, from + 16, from + 31)
n = holds(key, name)
for i = 0, n - 1 do call('ZADD', KEYS[key], text(now + lease), member(name, 0, i)) end
if n > 0 then expire(key, now + lease) else lost = lost + 1 end
