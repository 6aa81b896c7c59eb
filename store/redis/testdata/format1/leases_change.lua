-- Changes of slots, put together as nodes did that named leases by the instant. It is not to
-- be changed: such nodes may run beside those of today.
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
local _, _, settles, amount, life = unpack('<ddBdd', ARGV[1])
local lost, held = 0
if settles > 0 then
held = call('GET', KEYS[#KEYS])
local past = held and settles ~= 3 and unpack('<d', held)
if settles == 3 and held or settles == 4 and held and past >= amount or settles < 3 and (not held or past <= now) then
return pack('<ddddd', tag, 0, now, 0, tag + now)
end
end
for i = 2, #ARGV do
local arg, state, till = ARGV[i]
local kind, verb, key, id, n, taken, takent, charged, from = unpack('<BBI2c9ddI2d', arg)
local box = kind < 5 and (boxes[key] or call('GET', KEYS[key])) or ''
boxes[key] = box
local at = 1
while at < #box and sub(box, at, at + 8) ~= id do
at = at + 16 + unpack('<I2', box, at + 14)
end
at = at < #box and at + 16 or nil
if verb == 1 then
elseif verb == 2 then
if kind == 6 then
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
for i = holds(key, taken, takent) - 1, 0, -1 do
if n == 0 then break end
call('ZREM', KEYS[key], member(taken, takent, i))
n = n - 1
end
end
elseif verb == 3 then
if kind == 6 then
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
n = holds(key, taken, takent)
for i = 0, n - 1 do call('ZADD', KEYS[key], text(now + lease), member(taken, takent, i)) end
if n > 0 then expire(key, now + lease) else lost = lost + 1 end
end
elseif kind == 4 or kind == 5 then
elseif kind >= 5 then
call('DEL', KEYS[key])
elseif at then
state, till = '', 0
end
if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end
if state then
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
boxes[key], lasts[key] = box, last
end
end
for key, last in pairs(lasts) do
local box = boxes[key]
if box == '' then
call('DEL', KEYS[key])
else
call('SETEX', KEYS[key], last - second + grace, box)
end
end
if settles == 1 then
call('DEL', KEYS[#KEYS])
elseif settles == 2 then -- it ends at 0, so that it is no record to whoever does not know of marks
call('SETEX', KEYS[#KEYS], life, pack('<d', 0) .. sub(held, 9) .. pack('<d', amount))
elseif settles == 3 then
call('SETEX', KEYS[#KEYS], life, '')
elseif settles == 4 then
call('SETEX', KEYS[#KEYS], life, pack('<d', amount))
end
return pack('<ddddd', tag, 1, now, lost, tag + 1 + now + lost)
