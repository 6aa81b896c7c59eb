-- Interpolation within a window, as internal/algo/scale.go has it: in units of a
-- power of two of µs, chosen by the caller such that products stay below 2^53.

--:help
--<muldiv help>
-- weigh is ⌊count·overlap⌋ for a window of so many units that ends off units from now.
local function weigh(count, off, window)
  local product = count * (window - off)
  if product < 9007199254740992 then return floor(product / window) end
  if off == 0 then return count end
  return (muldiv(window - off, count, window)) -- counted under a far higher limit
end

-- admits is the first offset at which the weight of count is at most room; nil
-- when there is none within the window.
local function admits(room, count, window)
  if room < 0 then return nil end
  if count <= room then return 0 end
  local off = window - floor(((room + 1) * window - 1) / count)
  if off < window then return off end
end
