-- Adds a part to a text that is about to be put on a shelf.
--
-- KEYS[1] is a list of the parts so far. ARGV[1] is the tag of the reply, ARGV[2] after how many
-- seconds the list is dropped if nothing more comes, ARGV[3] the part. The reply is the tag, how
-- many parts there are, and the hash of that.
local parts = redis.call('RPUSH', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
local reply = ARGV[1] .. struct.pack('<d', parts)
return reply .. redis.sha1hex(reply)
