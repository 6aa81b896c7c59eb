-- Take of one token or leaky bucket, put together as nodes did that kept the first format of
-- buckets, 18 bytes. It is not to be changed: such nodes may run beside those of today.
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
local events, count, after, pour
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
local em, cap, widest, leaky, wait, waitt, tau, taut, us, t, own, ownt, pace, ahead, changed, room, turns, owed
em, cap, widest, leaky, wait, waitt = unpack('<dddBdI2', arg, from)
local drained, ticks, old = 0, 0, em
if at then drained, ticks, old = unpack('<dI2d', box, at) end
if leaky == 0 and wait == 0 and waitt == 0 and widest * em < 1125899906842624 then
if drained < now then
owed = 0
elseif old == em and ticks < 32768 then
owed = (drained - now) * 1024 + ticks
if owed > widest * em then owed = nil end
end
end
if not owed then
if not events then
local exact = 9007199254740992 -- 2^53
events = function(n, em)
local us = floor(em / 1024)
local ticks = n * (em - us * 1024)
local more = floor(ticks / 1024)
return n * us + more, ticks - more * 1024
end
count = function(us, ticks, em)
local all = us * 1024 + ticks
local n = floor(all / em)
if all < exact and all > -exact then return n end
local taken, rest = events(n, em)
local left = (us - taken) * 1024 + (ticks - rest)
if left < 0 then return n - 1 elseif left >= em then return n + 1 end
return n
end
after = function(us, ticks, than, thanticks)
return (us - than) * 1024 + (ticks - thanticks) > 0
end
pour = function(us, ticks, pace, ahead)
if us == 0 and ticks == 0 then return '', 0 end
return pack('<dI2d', now + us, ahead and ticks + 32768 or ticks, pace), now + us + 1
end
end
tau, taut = events(cap, em)
us, t, own, ownt, pace, ahead, changed = 0, 0, 0, 0, em, false, false
if at then
if drained >= now then
us, t, pace = drained - now, ticks, old
if t >= 32768 then t, ahead = t - 32768, true end
local limit, limitt = events(widest, pace)
if ahead then -- as much again, and at least an hour
if limit >= 3600000000 then
limit, limitt = 2 * limit, 2 * limitt
if limitt >= 1024 then limit, limitt = limit + 1, limitt - 1024 end
else
limit = limit + 3600000000
end
end
if after(us, t, limit, limitt) then -- the clock was set back
us, t, changed = limit, limitt, true
end
own, ownt = us, t
if pace ~= em then
local function muldiv(a, b, c)
local q, r, bit = 0, 0, 1
while bit * 2 <= b do bit = bit * 2 end
while bit >= 1 do
q, r = q * 2, r * 2
if b >= bit then b, r = b - bit, r + a end
while r >= c do q, r = q + 1, r - c end
bit = bit / 2
end
return q, r
end
local function convert(us, ticks, old, em)
local n = count(us, ticks, old)
local taken, rest = events(n, old)
local more, cut = muldiv((us - taken) * 1024 + (ticks - rest), em, old)
us, ticks = events(n, em)
more = ticks + more
local carry = floor(more / 1024)
return us + carry, more - carry * 1024, cut > 0
end
local cut
us, t, cut = convert(us, t, pace, em)
if cut then
t = t + 1
if t == 1024 then us, t = us + 1, 0 end
end
if not after(us, t, tau, taut) then
own, ownt, pace, ahead, changed = us, t, em, false, true
end
end
end
end
end
if owed then
room = floor((cap * em - owed) / em)
if unit <= cap then k = fits(room, cost, unit, copies) end
else
room = count(tau - us, taut - t, em)
if leaky == 1 then
turns = count(wait - us, waitt - t, em)
if unit <= cap and turns >= 0 and room >= 0 then
k = fits(room, cost, unit, copies)
if k > 1 and cost > 0 then -- the last copy must also leave in time
local last = floor(turns / unit) + 1
if last < k then k = last end
end
end
elseif unit <= cap then
local free = room
if wait > 0 or waitt > 0 then free = count(tau - us + wait, taut - t + waitt, em) end
k = fits(free, cost, unit, copies)
end
end
if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end
if moved then return pack('<ddddd', tag, -2, 1, moved, tag - 1 + moved) end
local granted = k
ticks = 0
local left, reset, resett, other, othert, later, latert, state, till = 0, 0, 0, 0, 0, 0, 0
local short = granted > 0 and granted < copies
local n = k * cost
left = room - n
if owed then
if n > 0 then
owed = owed + n * em
reset = floor(owed / 1024)
resett = owed - reset * 1024
state, till = pack('<dI2d', now + reset, resett, em), now + reset + 1
else
reset, resett = 0, owed
end
if (k == 0 or short) and unit <= cap then latert = owed - (cap - unit) * em end
else
if leaky == 1 then
if turns < n then left = 0 elseif turns - n + 1 < left then left = turns - n + 1 end
end
if changed then state, till = pour(own, ownt, pace, ahead) end
if k == 0 then
reset, resett = own, ownt
else
if leaky == 1 then
other, othert = us, t
else
local one, onet = events(unit, em)
if after(us + one, t + onet, tau, taut) then other, othert = us + one - tau, t + onet - taut end
end
if n > 0 then
local more, moret = events(n, em)
us, t = us + more, t + moret
if t >= 1024 then us, t = us + 1, t - 1024 end
local limit, limitt = events(widest, em)
state, till = pour(us, t, em, after(us, t, limit, limitt))
own, ownt, pace = us, t, em
end
reset, resett = own, ownt
end
if (k == 0 or short) and unit <= cap then
local limit, limitt = events(unit, em)
limit, limitt = tau - limit, taut - limitt
if leaky == 0 then
limit, limitt = limit + wait, limitt + waitt
elseif after(limit, limitt, wait, waitt) then
limit, limitt = wait, waitt
end
if pace ~= em then
local function muldiv(a, b, c)
local q, r, bit = 0, 0, 1
while bit * 2 <= b do bit = bit * 2 end
while bit >= 1 do
q, r = q * 2, r * 2
if b >= bit then b, r = b - bit, r + a end
while r >= c do q, r = q + 1, r - c end
bit = bit / 2
end
return q, r
end
local function convert(us, ticks, old, em)
local n = count(us, ticks, old)
local taken, rest = events(n, old)
local more, cut = muldiv((us - taken) * 1024 + (ticks - rest), em, old)
us, ticks = events(n, em)
more = ticks + more
local carry = floor(more / 1024)
return us + carry, more - carry * 1024, cut > 0
end
limit, limitt = convert(limit, limitt, em, pace)
end
later, latert = own - limit, ownt - limitt
end
end
if left < 0 then left = 0 end
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
