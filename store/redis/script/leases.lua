-- concurrency, as internal/algo/leases.go has it: slots in use, each on a lease. The
-- leases are a ZSET of its own: the name of each, and the µs at which it ends. A name
-- is the instant of the charge with ticks that tell leases of one instant apart, and
-- which slot of the charge it is.

--:help
-- The keys of leases to be taken, and of how many copies at most.
local leased, longest = {}, 0

local function text(us) return string.format('%.0f', us) end

local function member(us, ticks, slot)
  local more = floor(ticks / 1024)
  return string.format('%.0f.%d:%d', us + more, ticks - more * 1024, slot)
end

local function expire(key, last)
  call('EXPIRE', KEYS[key], floor(last / 1000000) + 1 - second + grace)
end

-- holds is how many slots are held under a name.
local function holds(key, us, ticks)
  local n = 0
  while true do
    local ends = call('ZSCORE', KEYS[key], member(us, ticks, n))
    if not ends or tonumber(ends) <= now then return n end
    n = n + 1
  end
end

--:vars
slots, lease, held, last

--:settle
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
k = fits(slots - held, cost, unit, copies)
if cost > 0 and k > 0 then leased[#leased + 1], longest = key, k > longest and k or longest end

--:name
-- ticks becomes, from those proposed, such that nobody holds a lease of the names that
-- the copies granted get.
if longest > granted then longest = granted end
do
  local try = ticks
  while try < ticks + longest do
    for _, key in ipairs(leased) do
      if call('ZSCORE', KEYS[key], member(now, try, 0)) then ticks = try + 1 end
    end
    try = try + 1
  end
end
if longest == 0 then ticks = 0 end

--:take
local n = k * cost
if n > 0 then
  last = now + lease
  call('ZREMRANGEBYSCORE', KEYS[key], '-inf', text(now))
  for i = 0, n - 1 do
    call('ZADD', KEYS[key], text(last), member(now, ticks + floor(i / cost), i % cost))
  end
  expire(key, last)
end
held = held + n
left = held < slots and slots - held or 0
reset = last - now
if (k == 0 or short) and unit <= slots then
  local must = held + unit - slots
  later = call('ZRANGEBYSCORE', KEYS[key], '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', must - 1, 1)[2] - now
end

--:back
for i = holds(key, taken, takent) - 1, 0, -1 do
  if n == 0 then break end
  call('ZREM', KEYS[key], member(taken, takent, i))
  n = n - 1
end

--:force
-- A slot cannot be taken unasked.

--:renew
n = holds(key, taken, takent)
for i = 0, n - 1 do call('ZADD', KEYS[key], text(now + lease), member(taken, takent, i)) end
if n > 0 then expire(key, now + lease) else lost = lost + 1 end
