-- Changes what was charged: charges unasked, returns, renews leases, resets. ARGV[1]
-- goes on with what is done about the last of KEYS, with an amount and a time to live in
-- seconds: 0 nothing; 1 it is a record, which is settled and deleted; 2 it is a record,
-- which is marked as being settled with the amount; 3 it is a mark, which is left; 4 it is
-- a mark of the amount, which is left. Where the record is missing, marked or past its end, or
-- the mark is there, or one of as high an amount, nothing is changed. ARGV[2] and on are the
-- changes.
-- Those of calendar periods come first: while their bounds are missed, nothing has been
-- written; nor when a counter is found elsewhere.
--
-- The reply is packed numbers, between tag and sum: 1, or 0 when nothing was changed; now; how
-- many leases were lost.
local _, _, settles, amount, life = unpack('<ddBdd', ARGV[1])
local lost, held = 0
if settles > 0 then
  held = call('GET', KEYS[#KEYS])
  local past = held and settles ~= 3 and unpack('<d', held)
  if settles == 3 and held or settles == 4 and held and past >= amount or settles < 3 and (not held or past <= now) then
    return pack('<ddddd', tag, 0, now, 0, tag + now)
  end
end
-- most is how many events may be used after a charge unasked: a debt is at most one capacity.
-- What a node has admitted by itself, and leaves a mark of, is charged in any case: versions of
-- the limit with a larger capacity may have used more than that. highest is all that any has.
local function most(capacity, highest)
  return settles == 4 and 2 * highest or 2 * capacity
end
--<moves>
for i = 2, #ARGV do
  local arg, reserved, lease, state, till = ARGV[i], 0, 0
  -- n events were taken at an instant, in a calendar period that began at charged; before 0,
  -- the instant means those taken last.
  local kind, verb, key, id, n, taken, takent, charged, from = unpack('<BBI2c9ddI2d', arg)
  local box = kind < 5 and (boxes[key] or call('GET', KEYS[key])) or ''
  boxes[key] = box
  --<box find>
  if verb == 1 then
    --<force>
  elseif verb == 2 then
    --<back>
  elseif verb == 3 then
    --<renew>
  elseif kind == 4 or kind == 5 then
    --<reset>
  elseif kind >= 5 then
    call('DEL', KEYS[key])
  elseif at then
    state, till = '', 0
  end
  if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end
  if state then
    local last
    --<box merge>
    boxes[key], lasts[key] = box, last
  end
end
--<box all>
if settles == 1 then
  call('DEL', KEYS[#KEYS])
elseif settles == 2 then -- it ends at 0, so that it is no record to whoever does not know of marks
  call('SETEX', KEYS[#KEYS], life, pack('<d', 0) .. sub(held, 9) .. pack('<d', amount))
elseif settles == 3 then
  call('SETEX', KEYS[#KEYS], life, '')
elseif settles == 4 then
  call('SETEX', KEYS[#KEYS], life, pack('<d', amount))
end
return pack('<ddddd', tag, 1, now, lost, tag + 1 + now + lost)
