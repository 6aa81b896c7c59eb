-- Registers a node. Returns how many are registered, Redis' time in us, how many of them come
-- before this one in the order of their names, and whether this one was registered before; of no
-- more nodes than ARGV[5] then a number for each: twice a hash of its name, and 1 more if it comes
-- before this one.
--
-- KEYS[1] is a sorted set of nodes by the ms at which they expire, KEYS[2] where the node
-- tells about itself. ARGV[1] is the tag of the reply, ARGV[2] the node, ARGV[3] for how many
-- ms it is registered, ARGV[4] what it tells; '' if nothing. ARGV[5] is how many nodes may be
-- named in the reply.
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
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
local named = #members <= tonumber(ARGV[5])
local rank, names = 0, {}
for i, member in ipairs(members) do
  local before = member < ARGV[2] and 1 or 0
  rank = rank + before
  if named then
    names[i] = 2 * tonumber(string.sub(redis.sha1hex(member), 1, 12), 16) + before
  end
end
local reply = {struct.pack('<ddddd', tag, #members, us, rank, listed)}
local sum = tag + #members + us + rank + listed
for i, name in ipairs(names) do
  reply[i + 1], sum = struct.pack('<d', name), sum + name
end
return table.concat(reply) .. struct.pack('<d', sum)
