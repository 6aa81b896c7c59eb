-- Registers a node. Returns how many are registered, Redis' time in us, how many of them come
-- before this one in the order of their names, and whether this one was registered before.
--
-- KEYS[1] is a sorted set of nodes by the ms at which they expire, KEYS[2] where the node
-- tells about itself. ARGV[1] is the tag of the reply, ARGV[2] the node, ARGV[3] for how many
-- ms it is registered, ARGV[4] what it tells; '' if nothing.
local tag = struct.unpack('<d', ARGV[1])
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)
local last = now + tonumber(ARGV[3])

-- After a clock was set back, or on another master: no node stays for longer than this one.
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', last), '+inf')) do
  redis.call('ZADD', KEYS[1], string.format('%.0f', last), member)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local listed = 1 - redis.call('ZADD', KEYS[1], string.format('%.0f', last), ARGV[2])
local seconds = math.ceil(ARGV[3] / 1000) + 1
redis.call('EXPIRE', KEYS[1], seconds)
if ARGV[4] ~= '' then
  redis.call('SETEX', KEYS[2], seconds, string.format('%.0f ', us) .. ARGV[4])
end
local live, rank = 0, 0
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  live = live + 1
  if member < ARGV[2] then
    rank = rank + 1
  end
end
return struct.pack('<dddddd', tag, live, us, rank, listed, tag + live + us + rank + listed)
