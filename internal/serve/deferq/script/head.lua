-- Gives the caller the first of a line. One that was delivered and not acknowledged stays the first: it
-- is taken from nobody if it waits again, and from another gateway that has been silent for too long.
--
-- KEYS: turns, line. ARGV: the name of the line, the caller, after how many milliseconds a gateway is
-- silent for too long. It returns the ID and the one in the stream, or nothing if somebody has it.
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('ZREM', KEYS[1], ARGV[2])
  return {}
end
local pending, first = redis.call('XPENDING', KEYS[2], 'gateways', '-', '+', 1)[1], nil
if pending then
  local idle = ARGV[4]
  if pending[2] == 'nobody' then idle = '0' end
  first = redis.call('XCLAIM', KEYS[2], 'gateways', ARGV[3], idle, pending[1])[1]
  if not first then
    local left = math.max(number(ARGV[4]) - number(pending[3]), 1)
    redis.call('ZADD', KEYS[1], whole(now + left * 1000), ARGV[2])
    return {}
  end
else
  local read = redis.call('XREADGROUP', 'GROUP', 'gateways', ARGV[3], 'COUNT', 1, 'STREAMS', KEYS[2], '>')
  first = read and read[1] and read[1][2][1]
  if not first then return {} end
end
return { first[2][2], first[1] }
