-- Registers a node, and counts those that are registered.
--
-- KEYS[1] is a sorted set of nodes by the ms at which they expire, ARGV[1] the tag of the
-- reply, ARGV[2] the node, ARGV[3] for how many ms it is registered.
local tag = struct.unpack('<d', ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = now + tonumber(ARGV[3])

-- After a clock was set back, or on another master: no node stays for longer than this one.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', last), '+inf')) do
  redis.call('ZADD', KEYS[1], string.format('%.0f', last), member)
end
redis.call('ZADD', KEYS[1], string.format('%.0f', last), ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(ARGV[3] / 1000) + 1)
local live = redis.call('ZCOUNT', KEYS[1], '-inf', '+inf')
return struct.pack('<ddd', tag, live, tag + live)
