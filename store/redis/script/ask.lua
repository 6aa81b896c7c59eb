-- Opens a question to all nodes.
--
-- KEYS[1] is the sorted set of open questions by the us at which they were asked, KEYS[2] where
-- this one is. ARGV[1] is the tag of the reply, ARGV[2] its name, ARGV[3] its text, ARGV[4] for
-- how many seconds it is open, ARGV[5] how many may be open. The reply is the tag, 1 or, if too
-- many are open, 0, and the hash of that.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
-- After a clock was set back: no question is open for longer than this one.
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', us), '+inf')
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', us - tonumber(ARGV[4]) * 1000000))
local open = redis.call('ZCOUNT', KEYS[1], '-inf', '+inf') < tonumber(ARGV[5])
if open then
  redis.call('ZADD', KEYS[1], string.format('%.0f', us), ARGV[2])
  redis.call('EXPIRE', KEYS[1], ARGV[4])
  redis.call('SETEX', KEYS[2], ARGV[4], ARGV[3])
end
local reply = ARGV[1] .. struct.pack('<d', open and 1 or 0)
return reply .. redis.sha1hex(reply)
