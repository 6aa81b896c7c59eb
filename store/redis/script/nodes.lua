-- Lists the nodes that are registered.
--
-- KEYS[1] is the sorted set of beat.lua, ARGV[1] the tag of the reply, ARGV[2] how many nodes
-- to list at most, ARGV[3] how long a name may be. The reply is the tag, Redis' time in us,
-- for each node the size of its name, for how many ms it stays registered and the name, and
-- the hash of all that.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)
local nodes = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local reply = {ARGV[1], struct.pack('<d', us)}
for i = 1, #nodes, 2 do
  if #nodes[i] <= tonumber(ARGV[3]) then
    -- A score that is not ours may be fractional or infinite.
    local left = math.min(math.floor(nodes[i + 1] - now), 86400000)
    reply[#reply + 1] = struct.pack('<dd', #nodes[i], left) .. nodes[i]
  end
end
reply = table.concat(reply)
return reply .. redis.sha1hex(reply)
