-- Changes what was charged: charges unasked, returns, renews leases, resets. ARGV[1]
-- goes on with 1 if this settles a record, the last of KEYS, which happens once. ARGV[2]
-- and on are the changes. Those of calendar periods come first: while their bounds are
-- missed, nothing has been written.
--
-- The reply is packed numbers: 1, or 0 when there was no record; now; how many leases
-- were lost.
local _, settles = unpack('<dB', ARGV[1])
local boxes, lasts, lost = {}, {}, 0
if settles == 1 then
  local held = call('GET', KEYS[#KEYS])
  if not held or unpack('<d', held) <= now then return pack('<ddd', 0, now, 0) end
end
for i = 2, #ARGV do
  local arg, state, till = ARGV[i]
  -- n events were taken at an instant, in a calendar period that began at charged.
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
  elseif kind >= 5 then
    call('DEL', KEYS[key])
  elseif at then
    state, till = '', 0
  end
  if missed then return pack('<ddd', -1, now, missed) end
  if state then
    --<box keep>
    boxes[key], lasts[key] = box, last
  end
end
--<box all>
if settles == 1 then call('DEL', KEYS[#KEYS]) end
return pack('<ddd', 1, now, lost)
