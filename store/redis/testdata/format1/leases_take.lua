-- Take of slots, put together as nodes did that named leases by the instant. It is not to be
-- changed: such nodes may run beside those of today.
local call, floor, spread = redis.call, math.floor, unpack
local sub, pack, unpack = string.sub, struct.pack, struct.unpack
local tag, now = unpack('<dd', ARGV[1])
local grace = 3600
if now == 0 then
local time = call('TIME')
now, grace = time[1] * 1000000 + time[2], 0
end
local second = floor(now / 1000000)
local missed
local moved
local boxes, lasts, kin = {}, {}
local function fits(free, cost, unit, copies)
if free < unit then return 0 end
if copies == 1 or cost == 0 then return copies end
local k = floor(free / cost)
return k < copies and k or copies
end
local leased, longest = {}, 0
local function text(us) return string.format('%.0f', us) end
local function member(us, ticks, slot)
local more = floor(ticks / 1024)
return string.format('%.0f.%d:%d', us + more, ticks - more * 1024, slot)
end
local function expire(key, last)
call('EXPIRE', KEYS[key], floor(last / 1000000) + 1 - second + grace)
end
local function holds(key, us, ticks)
local n = 0
while true do
local ends = call('ZSCORE', KEYS[key], member(us, ticks, n))
if not ends or tonumber(ends) <= now then return n end
n = n + 1
end
end
local _, _, copies, ticks = unpack('<dddI2', ARGV[1])
local arg = ARGV[2]
local kind, _, key, id, cost, from = unpack('<BBI2c9d', arg)
local unit, asked, k = cost > 0 and cost or 1, copies, 0
local box = kind < 5 and call('GET', KEYS[key]) or ''
local at = 1
while at < #box and sub(box, at, at + 8) ~= id do
at = at + 16 + unpack('<I2', box, at + 14)
end
at = at < #box and at + 16 or nil
local slots, lease, held, last
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
k = fits(slots - held, cost, unit, copies)
if cost > 0 and k > 0 then leased[#leased + 1], longest = key, k > longest and k or longest end
if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end
if moved then return pack('<ddddd', tag, -2, 1, moved, tag - 1 + moved) end
local granted = k
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
local left, reset, resett, other, othert, later, latert, state, till = 0, 0, 0, 0, 0, 0, 0
local short = granted > 0 and granted < copies
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
if k == 0 then other, othert = later, latert end
if state then
if at == 17 and #box == 16 + #state and till <= unpack('<I5', box, 10) * 1000000 then
call('SETRANGE', KEYS[key], 16, state)
else
local last, entry = 0, ''
if state ~= '' then
last = -floor(-till / 1000000)
last = last + 1 + floor((last - second) / 16)
entry = pack('<c9I5I2', id, last, #state) .. state
end
if box == '' or at == 17 and #box == 16 + unpack('<I2', box, 15) then
box = entry
else
local here, rest = 1, {}
while here < #box do
local ends, size = unpack('<I5I2', box, here + 9)
if here + 16 ~= at and ends > second and not (kin and akin(box, here, kin)) then
rest[#rest + 1] = sub(box, here, here + 15 + size)
if ends > last then last = ends end
end
here = here + 16 + size
end
box = table.concat(rest) .. entry
end
kin = nil
if box == '' then
call('DEL', KEYS[key])
else
call('SETEX', KEYS[key], last - second + grace, box)
end
end
end
local sum = tag + granted + now + ticks + granted + left + reset + resett + other + othert
if short then
return pack('<ddddddddddddd', tag, granted, now, ticks, granted, left, reset, resett, other, othert,
later, latert, sum + later + latert)
end
return pack('<ddddddddddd', tag, granted, now, ticks, granted, left, reset, resett, other, othert, sum)
