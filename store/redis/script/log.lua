-- sliding_log, as internal/algo/log.go has it: a stamp in µs per event, and the window
-- (now-T, now]. The stamps are a LIST of its own, oldest first.

--:help
-- add stamps n events.
local function add(key, us, n)
  local text, some = string.format('%.0f', us), {}
  for i = 1, n < 1000 and n or 1000 do some[i] = text end
  while n > 1000 do
    call('RPUSH', KEYS[key], spread(some))
    n = n - 1000
  end
  call('RPUSH', KEYS[key], spread(some, 1, n))
end

-- outlive makes the list end with its last stamp.
local function outlive(key, last, period)
  call('EXPIRE', KEYS[key], floor((last + period) / 1000000) + 1 - second + grace)
end

-- outdated is how many of the stamps are not after edge: found by doubling, then halving.
local function outdated(key, size, edge)
  local low, high = -1, 0
  while high < size and tonumber(call('LINDEX', KEYS[key], high)) <= edge do low, high = high, 2 * high + 1 end
  if high > size then high = size end
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    if tonumber(call('LINDEX', KEYS[key], middle)) <= edge then low = middle else high = middle end
  end
  return high
end

--:vars
events, period, rejected, us, gone, total, last, altkey, anew

--:advance
-- total stamps count after the first gone, which do not; us is the instant to decide at.
events, period, rejected, altkey = unpack('<ddBI2', arg, from)
anew = false
us, gone, total, last = now, 0, call('LLEN', KEYS[key]), 0
if total > 0 then
  last = tonumber(call('LINDEX', KEYS[key], -1))
  if last - now > period then -- the clock was set back: every stamp moves
    local all = call('LRANGE', KEYS[key], 0, -1)
    call('DEL', KEYS[key])
    for _, stamp in ipairs(all) do add(key, stamp + now - last, 1) end
    outlive(key, now, period)
    last = now
  elseif last > now then
    us = last
  end
  gone = outdated(key, total, us - period)
  total = total - gone
end

--:fit
--<log seek>
k = fits(events - reserved - total, cost, unit, copies)

--:stamp
if anew then -- counts that have left the window may come back into it if the clock is set back
  local box, last = without(boxes[altkey] or call('GET', KEYS[altkey]), id)
  if boxes[altkey] then boxes[altkey] = box end
  if box == '' then call('DEL', KEYS[altkey]) else call('SETEX', KEYS[altkey], last - second + grace, box) end
  anew = false
end
-- n events are stamped, and the oldest over forgotten with those that are gone.
if gone + over > 0 then call('LTRIM', KEYS[key], gone + over, -1) end
add(key, us, n)
outlive(key, us, period)
gone, total, last = 0, total - over + n, us

--:reject
-- What was asked is stamped, granted or not. The oldest events beyond the limit make
-- room: they decide nothing. What a higher limit stamped stays as many.
-- Nobody uses up what is to remain by being refused.
if rejected == 1 and cost > 0 and unit + reserved <= events and (reserved == 0 or total <= events - reserved) then
  local held = total > events - reserved and total or events - reserved
  local n = cost * asked
  if n > held then n = held end
  local over = total + n > held and total + n - held or 0
  --<log stamp>
end

--:take
if rejected == 1 then
  --<log reject>
elseif k * cost > 0 then
  local n, over = k * cost, 0
  --<log stamp>
end
--<log told>

--:told
left = total < events - reserved and events - reserved - total or 0
if total > 0 then reset = last + period - now end
if (k == 0 or short) and unit + reserved <= events then
  later = call('LINDEX', KEYS[key], gone + total - events + reserved + unit - 1) + period - now
end

--:refused
-- Another limit has refused it. Once that is counted, there may be no room for it here either.
--<log reject>
if rejected == 1 and events - reserved - total < unit then
  fit = 0
  --<log told>
  delay = later
end

--:back
if taken < 0 then
  if n > total then n = total end
  if n > 0 then call('LTRIM', KEYS[key], 0, -n - 1) end
else
  call('LREM', KEYS[key], -n, string.format('%.0f', taken))
end

--:seek
if total == 0 then -- it may be kept as counts
  local box = call('GET', KEYS[altkey])
  if box then
    local _, parts, _, _, over = counted(box, id)
    moved, anew = parts, over
  end
end

--:reset
call('DEL', KEYS[key])
key = altkey
box = boxes[key] or call('GET', KEYS[key]) or ''
state, till, box, at = '', 0, (without(box, id)), nil

--:force
local over = 0
local room = most(events, 10000) - total
if n > room then n = room end
if n > 0 then
  --<log stamp>
end
