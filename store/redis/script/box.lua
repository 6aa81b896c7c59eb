-- Small states of one subject under one rule are kept in one string, as entries
--   id 9 bytes, end 5 bytes, size 2 bytes, state
-- The end is a second from which on the state says nothing any more, a little late, so
-- that it stays the same for some time. Entries of limits that this script knows nothing
-- of are kept until then, and the key lives until the last of them.

--:read
local box = kind < 5 and call('GET', KEYS[key]) or ''

--:find
-- at is where the state of id starts in the box; nil: it has none.
local at = 1
while at < #box and sub(box, at, at + 8) ~= id do
  at = at + 16 + unpack('<I2', box, at + 14)
end
at = at < #box and at + 16 or nil

--:change
-- The state takes the place of the one at. Where that is alone, as long, and its end late
-- enough, it is written over, which takes half the time. Redis formats numbers as decimals
-- of 17 digits, which is slow: the place is a string.
if at == 17 and #box == 16 + #state and till <= unpack('<I5', box, 10) * 1000000 then
  call('SETRANGE', KEYS[key], '16', state)
else
  local last
  --<box merge>
  --<box write>
end

--:place
-- The state takes the place of the one at, in a box that is written when all of its states are
-- known. last is then the second in which the last entry ends, or 0 where the key lives long
-- enough: each state so far was as long as the one before it, and its end late enough.
local ends, size = 0, -1
if at then ends, size = unpack('<I5I2', box, at - 7) end
if size == #state and till <= ends * 1000000 and not kin then
  box, last = sub(box, 1, at - 1) .. state .. sub(box, at + size), last or 0
else
  --<box merge>
end

--:merge
-- The state, which says something until till, takes the place of the one at, and what
-- is over goes; '' is no state. last is the second in which the last entry ends.
local entry = ''
last = 0
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

--:write
if box == '' then
  call('DEL', KEYS[key])
elseif last == 0 then
  call('SETRANGE', KEYS[key], '0', box)
else
  call('SETEX', KEYS[key], last - second + grace, box)
end

--:all
-- Several states may be kept in one box, which is written once.
for key, last in pairs(lasts) do
  local box = boxes[key]
  --<box write>
end
