-- Does what each.lua does, in one and a half times the time, while some keys cannot be used:
-- the checks on other keys are decided all the same. Each check is decided by itself, as in
-- one.lua, one after the other. They are of one law, which is not that of leases.
-- ARGV[2] is all of them, each with its size and the copies asked for before it.
--
-- The reply is packed numbers, between tag and sum: now; then for each check what one.lua
-- says of it. A check whose calendar bounds were missed got -1 copies, and the instant they
-- did not reach; one that cannot be asked got -2, and why: 1 the key is of another type,
-- 2 the user may not, 3 the key holds something else; one whose counter was found elsewhere
-- got -3, and in how many parts.
local arg, item, replies, sum = ARGV[2], 1, {}, tag + now

-- It is a function, made once for all, so that a key that nothing can be made of does not
-- keep the others from being decided.
local function decide(item)
  local _, copies, kind, flags, key, id, cost, from = unpack('<I2dBBI2c9d', arg, item)
  local unit, asked, k, reserved = cost > 0 and cost or 1, copies, 0, 0
  local lease = 0
  if flags > 1 then reserved, from = unpack('<d', arg, from) end -- so many are to remain
  if flags > 3 then lease, from = unpack('<d', arg, from) end -- for so long what is taken may be used
  --<read>
  --<box find>
  --<fit>
  if missed then
    replies[#replies + 1] = pack('<dddddd', -1, missed, 0, 0, 0, 0)
    sum = sum - 1 + missed
    return
  elseif moved then
    replies[#replies + 1] = pack('<dddddd', -3, moved, 0, 0, 0, 0)
    sum = sum - 3 + moved
    return
  end
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
  --<done>
end

while item < #arg do
  missed, moved = nil, nil
  local done, why = pcall(decide, item)
  if not done then
    if type(why) == 'table' then why = why.err end
    -- What is wrong with the server is an error of the call. Others may have been decided
    -- already: it says that the script has run.
    for _, word in ipairs({'OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'MASTERDOWN', 'LOADING', 'BUSY', 'CLUSTERDOWN', 'killed'}) do
      if string.find(why, word, 1, true) then return redis.error_reply(why .. ' (user_script:batch)') end
    end
    local code = 3
    if string.find(why, 'WRONGTYPE', 1, true) then code = 1 end
    if string.find(why, 'NOPERM', 1, true) or string.find(why, 'ACL failure', 1, true) or string.find(why, "The user executing", 1, true) then code = 2 end
    replies[#replies + 1] = pack('<dddddd', -2, code, 0, 0, 0, 0)
    sum = sum - 2 + code
  end
  item = item + unpack('<I2', arg, item)
end
return pack('<dd', tag, now) .. table.concat(replies) .. pack('<d', sum)
