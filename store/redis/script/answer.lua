-- Answers a question that is open.
--
-- KEYS[1] is where the question is, KEYS[2] the list of answers. ARGV[1] is the tag of the
-- reply, ARGV[2] the answer, ARGV[3] for how many seconds it is kept, ARGV[4] how many there
-- may be. The reply is the tag, 1 or, if the question is not open or has that many answers, 0,
-- and the hash of that.
local open = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('LLEN', KEYS[2]) < tonumber(ARGV[4])
if open then
  redis.call('RPUSH', KEYS[2], ARGV[2])
  redis.call('EXPIRE', KEYS[2], ARGV[3])
end
local reply = ARGV[1] .. struct.pack('<d', open and 1 or 0)
return reply .. redis.sha1hex(reply)
