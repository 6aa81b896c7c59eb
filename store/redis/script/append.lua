-- Appends lines to a list that keeps the last ones. A line that is sent again, because the
-- answer was lost, is not appended again.
--
-- KEYS[1] is the list, KEYS[2] a sorted set of the names of lines by the us at which they were
-- appended. ARGV[1] is the tag of the reply, ARGV[2] how many lines are kept, ARGV[3] for how
-- many seconds names are, and the others are lines, which begin with their names. The reply is
-- the tag, the length of the list, and the hash of that.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
for i = 4, #ARGV do
  local name = string.match(ARGV[i], '^%S+') or ''
  if not redis.call('ZSCORE', KEYS[2], name) then
    redis.call('ZADD', KEYS[2], string.format('%.0f', us), name)
    redis.call('RPUSH', KEYS[1], ARGV[i])
  end
end
redis.call('LTRIM', KEYS[1], '-' .. ARGV[2], -1)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', us - tonumber(ARGV[3]) * 1000000))
redis.call('EXPIRE', KEYS[2], ARGV[3])
local reply = ARGV[1] .. struct.pack('<d', redis.call('LLEN', KEYS[1]))
return reply .. redis.sha1hex(reply)
