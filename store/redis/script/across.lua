-- A batch of keys in several slots of one master: what is different then in each.lua and in
-- careful.lua. Redis takes only keys of one slot as KEYS, so all of them come in ARGV, from
-- the third argument on; those of the first check are in KEYS as well. Any of them may
-- belong to another master by now, or be on its way there, or be of another type: a check whose
-- keys cannot be read here gets -4 copies, and nothing is written for it.

--:head
local KEYS, try, is = ARGV, redis.pcall, type

--:box
local box = try('GET', KEYS[key])
if is(box) == 'table' then
  --<across elsewhere>
else
box = box or ''

--:parts
local box, beside = try('GET', KEYS[key]), try('LLEN', KEYS[key + 1])
if is(box) == 'table' or is(beside) == 'table' then
  --<across elsewhere>
else
box = box or ''

--:log
local box, beside = try('LLEN', KEYS[key]), try('GET', KEYS[key + 1])
if is(box) == 'table' or is(beside) == 'table' then
  --<across elsewhere>
else
box = ''

--:elsewhere
replies[#replies + 1] = pack('<dddddd', -4, 0, 0, 0, 0, 0)
sum = sum - 4

--:done
end
