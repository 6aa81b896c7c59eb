-- Decides independent checks: each by itself, as in one.lua, one after the other. They are
-- of one law, which is not that of leases.
-- ARGV[2] is all of them, each with its size and the copies asked for before it.
--
-- The reply is packed numbers, between tag and sum: now; then for each check what one.lua
-- says of it. A check whose calendar bounds were missed got -1 copies, and the instant they
-- did not reach; one whose counter was found elsewhere got -3, and in how many parts. Where
-- one cannot be asked, the call fails; careful.lua goes on with the others. across.lua has
-- what is different in a cluster.
local arg, item, replies, sum = ARGV[2], 1, {}, tag + now
while item < #arg do
  local size, copies, kind, flags, key, id, cost, from = unpack('<I2dBBI2c9d', arg, item)
  local unit, asked, k, reserved = cost > 0 and cost or 1, copies, 0, 0
  local lease = 0
  if flags > 1 then reserved, from = unpack('<d', arg, from) end -- so many are to remain
  if flags > 3 then lease, from = unpack('<d', arg, from) end -- for so long what is taken may be used
  missed, moved = nil, nil
  --<read>
  --<box find>
  --<fit>
  if missed then
    replies[#replies + 1] = pack('<dddddd', -1, missed, 0, 0, 0, 0)
    sum = sum - 1 + missed
  elseif moved then
    replies[#replies + 1] = pack('<dddddd', -3, moved, 0, 0, 0, 0)
    sum = sum - 3 + moved
  else
    local granted = k
    local left, reset, resett, delay, delayt, later, latert, state, till = 0, 0, 0, 0, 0, 0, 0
    local short = granted > 0 and granted < copies
    --<take>
    if k == 0 then delay, delayt = later, latert end
    if state then
      --<box change>
    end
    replies[#replies + 1] = pack('<dddddd', granted, left, reset, resett, delay, delayt)
    sum = sum + granted + left + reset + resett + delay + delayt
    if short then
      replies[#replies + 1] = pack('<dd', later, latert)
      sum = sum + later + latert
    end
  end
  --<done>
  item = item + size
end
return pack('<dd', tag, now) .. table.concat(replies) .. pack('<d', sum)
