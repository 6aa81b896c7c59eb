-- What sliding_log and sub_windows have in common: one counter, which is kept as a list
-- of stamps or as counts of so many parts. See runs.go.

--:help
-- akin reports whether the entry at here has counts of the period of id. An id is the
-- algorithm, then period and parts in one number of 8 bytes, 10 bits for these.
local function akin(box, here, id)
  if string.byte(box, here) ~= 6 or sub(box, here + 1, here + 6) ~= sub(id, 2, 7) then return false end
  local low, its = string.byte(id, 8), string.byte(box, here + 7)
  return low - low % 4 == its - its % 4
end

-- periodOf is the period in an id, in µs.
local function periodOf(id)
  local a, b, c, d, e, f, g = string.byte(id, 2, 8)
  return ((((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g - g % 4) / 4
end

-- counted finds counts of the period of id that are still in the window, whatever their
-- parts: where the state is, how many parts there are, how long each is, and its id. The
-- last result says whether there are any that are not in the window any more.
local function counted(box, id)
  local period, here, over = periodOf(id), 1, false
  while here < #box do
    local size = unpack('<I2', box, here + 14)
    if akin(box, here, id) then
      local parts = string.byte(box, here + 7) % 4 * 256 + string.byte(box, here + 8)
      local width = -floor(-period / parts)
      local last = unpack('<d', box, here + 16) + (size - 12) / 4 - 1
      if (last + parts + 1) * width > now then return here + 16, parts, width, sub(box, here, here + 8) end
      over = true
    end
    here = here + 16 + size
  end
  return nil, nil, nil, nil, over
end

-- without is a box without the counts of the period of id, and the second in which the
-- last of its entries ends.
local function without(box, id)
  local here, rest, last = 1, {}, 0
  while here < #box do
    local ends, size = unpack('<I5I2', box, here + 9)
    if ends > second and not akin(box, here, id) then
      rest[#rest + 1] = sub(box, here, here + 15 + size)
      if ends > last then last = ends end
    end
    here = here + 16 + size
  end
  return table.concat(rest), last
end
