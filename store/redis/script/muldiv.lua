-- A product beyond 2^53, divided.

--:help
-- muldiv is ⌊a·b/c⌋ and what remains, for a < c < 2^53/3.
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
