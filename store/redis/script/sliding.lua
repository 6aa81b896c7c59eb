-- sliding_window, as internal/algo/sliding.go has it: two counts, the older weighed by
-- how much of its window is still in view. The state is the number of the current
-- window, the count of the one before, and its own.

--:help
-- slid is the state of such counts, and when it is over.
local function slid(number, prev, cur, period)
  if prev + cur == 0 then return '', 0 end
  return pack('<dI4I4', number, prev, cur), (number + (cur > 0 and 2 or 1)) * period
end

--:vars
events, period, unitus, window, number, prev, cur, off, changed, used

--:advance
-- off is how far into the window of that number now lies, in units of unitus µs.
events, period, unitus, window = unpack('<dddd', arg, from)
number, prev, cur, changed = floor(now / period), 0, 0, false
off = floor((now - number * period) / unitus)
if at then
  local last, before, own = unpack('<dI4I4', box, at)
  local ahead = last - number
  if ahead == 0 then
    prev, cur = before, own
  elseif ahead == -1 then
    prev = own
  elseif ahead == 1 then -- decide as at its instant
    number, prev, cur, off = last, before, own, 0
  elseif ahead > 1 then -- relabel; it is not known how much of prev had left the view
    cur, changed = own + before, true
    if cur > 536870910 then cur = 536870910 end -- more is never counted in a window, under whatever limit
  end
end

--:fit
used = cur + weigh(prev, off, window)
k = fits(events - reserved - used, cost, unit, copies)

--:take
local n = k * cost
cur, used = cur + n, used + n
if n > 0 or changed then state, till = slid(number, prev, cur, period) end
left = used < events - reserved and events - reserved - used or 0
if cur > 0 then reset = (number + 2) * period - now elseif prev > 0 then reset = (number + 1) * period - now end
if (k == 0 or short) and unit + reserved <= events then
  -- The first µs at which it would pass, if nothing else came.
  local first = admits(events - reserved - unit - cur, prev, window)
  if first then
    later = number * period + (first > off and first or off) * unitus - now
  else
    first = admits(events - reserved - unit, cur, window)
    later = first and (number + 1) * period + first * unitus - now or (number + 2) * period - now
  end
end

--:back
local paid = floor(taken / period)
if taken < 0 then
  if n > cur then prev, n = n - cur < prev and prev - n + cur or 0, cur end
  cur = cur - n
  state, till = slid(number, prev, cur, period)
elseif paid == number then
  cur = n < cur and cur - n or 0
  state, till = slid(number, prev, cur, period)
elseif paid == number - 1 then
  prev = n < prev and prev - n or 0
  state, till = slid(number, prev, cur, period)
end

--:force
local room = most(events, 268435455) - cur - weigh(prev, off, window)
if n > room then n = room end
if n > 0 then cur = cur + n end
state, till = slid(number, prev, cur, period)
