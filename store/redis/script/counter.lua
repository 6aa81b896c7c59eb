-- fixed_window and quota, as internal/algo/counter.go has them: a count per period,
-- back to zero at once. The state is the start of the period, in µs, and the count.

--:help
-- span is the period that holds the instant us. Those of the calendar come from the
-- caller, as bounds around its time, from the place dates of arg on; where they do not
-- reach, they are missed.
local function span(us, period, bounds, arg, dates)
  if period > 0 then -- weeks start on Monday
    local origin = period % 604800000000 == 0 and 345600000000 or 0
    local start = us - (us - origin) % period
    return start, start + period
  end
  for i = 1, bounds - 1 do
    local start, finish = unpack('<dd', arg, dates + (i - 1) * 8)
    if start <= us and us < finish then return start, finish end
  end
  missed = us
  return us, us + 1
end

--:vars
events, start, finish, total, changed

--:advance
-- total is what counts in the period from start to finish.
local period, bounds, dates
events, period, bounds, dates = unpack('<ddB', arg, from)
start, finish = span(now, period, bounds, arg, dates)
total, changed = 0, false
if at then
  local since, held = unpack('<dI4', box, at)
  if since >= start and held > 0 then
    total = held
    if since > start then
      if since - now <= finish - start then -- a moment ahead: decide as at its instant
        local _, ends = span(since, period, bounds, arg, dates)
        start, finish = since, ends
      else -- the clock was set back
        changed = true
      end
    end
  end
end

--:fit
k = fits(events - reserved - total, cost, unit, copies)

--:take
local n = k * cost
total = total + n
if n > 0 or changed then state, till = pack('<dI4', start, total), finish end
left = total < events - reserved and events - reserved - total or 0
if total > 0 then reset = finish - now end
if k == 0 or short then later = finish - now end

--:back
if start == charged or taken < 0 then
  total = n < total and total - n or 0
  if total == 0 then state, till = '', 0 else state, till = pack('<dI4', start, total), finish end
end

--:force
n = total + n
local brim = most(events, 268435455)
if n > brim then n = brim end
if n > total then total = n end
state, till = pack('<dI4', start, total), finish
