-- What every script starts with: the clock and the numbers.
--
-- Redis' Lua counts in doubles, in which whole numbers are exact up to 2^53. An
-- instant in µs is. One in ticks of 1/1024 µs is not, nor is a year in ticks. What
-- is counted in ticks is therefore two numbers: µs, and the ticks beyond them,
-- 0 to 1023. No number is ever printed in decimal, except whole ones by %.0f:
-- Lua prints 14 digits.
local call, floor, spread = redis.call, math.floor, unpack
local sub, pack, unpack = string.sub, struct.pack, struct.unpack

-- ARGV[1] starts with a tag, which the reply starts with as well: whoever asked knows by
-- it that the reply is to this call. Every reply ends with the sum of all its numbers, the
-- tag included, added one after the other: none was changed on the way.
--
-- Then comes the instant in µs that a test pretends it to be, 0 otherwise. Under a
-- pretended clock, which may stand still, keys live longer.
local tag, now = unpack('<dd', ARGV[1])
local grace = 3600
if now == 0 then
  local time = call('TIME')
  now, grace = time[1] * 1000000 + time[2], 0
end
local second = floor(now / 1000000)

-- missed is an instant that calendar bounds did not reach: the caller sends others.
local missed

-- moved is in how many parts the counter of a log was found, 0 when it is a log after
-- all: the caller asks again accordingly.
local moved

-- boxes are the states of keys as they are to be written, lasts when each ends; see
-- box.lua. kin is the id of a counter that is begun anew: others of its family go.
local boxes, lasts, kin = {}, {}

-- fits is how many of the copies of a cost fit into free events; a peek, which costs
-- nothing, asks about a unit of 1.
local function fits(free, cost, unit, copies)
  if free < unit then return 0 end
  if copies == 1 or cost == 0 then return copies end
  local k = floor(free / cost)
  return k < copies and k or copies
end
