-- Lists when other regions were heard of.
--
-- KEYS[1] is a sorted set of regions by the us until which all that they have counted is known
-- here. ARGV[1] is the tag of the reply, ARGV[2] how many to list at most, ARGV[3] how long a name
-- may be. The reply is the tag, the time in us, for each region its us, the size of its name and the
-- name, and the hash of all that.
local call, pack = redis.call, struct.pack
local time = call('TIME')
local text = ARGV[1] .. pack('<d', time[1] * 1000000 + time[2])
local list = call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #list, 2 do
  if #list[i] <= tonumber(ARGV[3]) then
    text = text .. pack('<dd', math.floor(tonumber(list[i + 1])), #list[i]) .. list[i]
  end
end
return text .. redis.sha1hex(text)
