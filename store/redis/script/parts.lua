-- sub_windows, as internal/algo/parts.go has them: counts of whole parts of the
-- window, and of the part that is leaving it, weighed by how much of it is still in
-- view or, with ceiling, whole. The state is the number of the oldest part that has
-- a count, the sum of all counts, and a count for each part from there to the last
-- that has one, 4 bytes each.

--:help
-- nth is one of the counts; the first is 0.
local function nth(counts, i) return (unpack('<I4', counts, 4 * i + 1)) end

-- trim makes the first and the last count ones that are not zero.
local function trim(base, total, counts)
  if total == 0 then return base, '' end
  local first, last = 0, #counts / 4 - 1
  while nth(counts, first) == 0 do first = first + 1 end
  while nth(counts, last) == 0 do last = last - 1 end
  return base + first, sub(counts, 4 * first + 1, 4 * last + 4)
end

-- push adds n to the count of a part, which is not before the last.
local function push(base, counts, part, n)
  local last = base + #counts / 4 - 1
  if counts == '' then return part, pack('<I4', n) end
  if last == part then
    return base, sub(counts, 1, -5) .. pack('<I4', nth(counts, #counts / 4 - 1) + n)
  end
  return base, counts .. string.rep('\0', 4 * (part - last - 1)) .. pack('<I4', n)
end

--:vars
events, parts, width, unitus, window, ceiling, part, off, base, total, counts, changed, used, altkey, strict, stamped, anew

--:advance
-- part is the one to decide in, off how far into it now lies, in units of unitus µs.
-- What has left the window is not among the counts.
events, parts, width, unitus, window, ceiling, altkey, strict = unpack('<dddddBI2B', arg, from)
anew = false
if not at or (unpack('<d', box, at) + (unpack('<I2', box, at - 2) - 12) / 4 + parts) * width <= now then
  local found, n, wide, its, over = counted(box, id)
  anew = over
  if found then -- it goes on in the parts that it was begun in
    at, id, parts, width, unitus = found, its, n, wide, 1
    while (2 * events + 1) * -floor(-width / unitus) >= 9007199254740992 do unitus = 2 * unitus end
    window = -floor(-width / unitus)
  end
end
stamped = false
part = floor(now / width)
off = floor((now - part * width) / unitus)
base, total, counts, changed = part, 0, '', false
if at then
  base, total = unpack('<dI4', box, at)
  counts = sub(box, at + 12, at - 1 + unpack('<I2', box, at - 2))
  local size = #counts / 4
  local last = base + size - 1
  if last - part > parts then
    -- The clock was set back. All counts move such that the last one is in this part.
    -- The oldest may not weigh less by that, and leaves with the next.
    base, changed = part - size + 1, true
    if base == part - parts then
      counts, base = pack('<I4', nth(counts, 0) + nth(counts, 1)) .. sub(counts, 9), base + 1
    end
  elseif last > part then -- decide as at its instant
    part, off = last, 0
  end
  local gone = part - parts - base
  if gone >= #counts / 4 then
    total, counts = 0, ''
  elseif gone > 0 then
    for i = 0, gone - 1 do total = total - nth(counts, i) end
    base, counts = trim(base + gone, total, sub(counts, 4 * gone + 1))
  end
end
if total == 0 and strict == 0 and call('LLEN', KEYS[altkey]) > 0 then
  --<parts convert>
end
used = total
if ceiling == 0 and total > 0 and base == part - parts then
  local leaving = nth(counts, 0)
  used = total - leaving + weigh(leaving, off, window)
end

--:convert
-- The stamps of a log become counts, those that count in it. A log is never later than the
-- clock by more than its period, or else the clock was set back, and all of it moves to now.
local stamps, period = call('LRANGE', KEYS[altkey], 0, -1), periodOf(id)
local last, back = tonumber(stamps[#stamps]), 0
if last - now > period then back = now - last end
local edge = (last + back > now and last + back or now) - period
if floor((last + back) / width) > part then part, off = floor((last + back) / width), 0 end
local here, n = nil, 0
for i = 1, #stamps + 1 do
  local p = i <= #stamps and floor((stamps[i] + back) / width)
  if p ~= here then
    if n > 0 then
      base, counts = push(base, counts, here, n)
      total = total + n
    end
    here, n = p, 0
  end
  if p and stamps[i] + back > edge and p >= part - parts then n = n + 1 end
end
stamped, changed = true, total > 0

--:fit
--<parts seek>
k = fits(events - reserved - used, cost, unit, copies)

--:take
local n = k * cost
if n > 0 then
  base, counts = push(base, counts, part, n)
  total, used, changed = total + n, used + n, true
end
left = used < events - reserved and events - reserved - used or 0
local over = (base + #counts / 4 + parts) * width -- when the last count has left the window
if total > 0 then reset = over - now end
if changed then
  if total > 0 then state, till = pack('<dI4', base, total) .. counts, over else state, till = '', 0 end
  if stamped then call('DEL', KEYS[altkey]) end
  if anew then kin = id end
end
if (k == 0 or short) and unit + reserved <= events then
  -- The parts leave one by one, oldest first, until the rest leaves room.
  local free, rest, first = events - reserved - unit, total, 0
  for i = 0, #counts / 4 - 1 do
    if rest <= free then break end
    local one = nth(counts, i)
    rest = rest - one
    local off = ceiling == 0 and one > 0 and admits(free - rest, one, window)
    if off then
      first = (base + i + parts) * width + off * unitus
      break
    end
    first = (base + i + parts + 1) * width
  end
  if first > now then later = first - now end
end

--:seek
if strict == 1 and total == 0 then moved = 0 end -- it can be a log again

--:reset
call('DEL', KEYS[altkey])
state, till, box, at = '', 0, (without(box, id)), nil

--:back
local i = floor(taken / width) - base
if taken < 0 then i = #counts / 4 - 1 end
while n > 0 and i >= 0 and i < #counts / 4 do
  local one = nth(counts, i)
  local some = n < one and n or one
  counts = sub(counts, 1, 4 * i) .. pack('<I4', one - some) .. sub(counts, 4 * i + 5)
  total, changed = total - some, true
  n, i = taken < 0 and n - some or 0, i - 1
end
if changed then base, counts = trim(base, total, counts) end
if changed then
  if total > 0 then
    state, till = pack('<dI4', base, total) .. counts, (base + #counts / 4 + parts) * width
  else
    state, till = '', 0
  end
  if stamped then call('DEL', KEYS[altkey]) end
  if anew then kin = id end
end

--:force
local room = most(events, 268435455) - used
if n > room then n = room end
if n > 0 then
  base, counts = push(base, counts, part, n)
  total, changed = total + n, true
end
if changed and total > 0 then
  state, till = pack('<dI4', base, total) .. counts, (base + #counts / 4 + parts) * width
  if stamped then call('DEL', KEYS[altkey]) end
  if anew then kin = id end
end
