-- Notes that another region was heard of.
--
-- KEYS[1] is the data set and its last change, KEYS[2] a sorted set of regions by the us of this
-- server's clock until which all that they have counted is known here. ARGV[1] is the tag of the
-- reply, ARGV[2] the name of the region, ARGV[3] how many us ago that was, or less than 0 if it is
-- not known, ARGV[4] 16 bytes that name the data set if it has no name. The reply is the tag, the name of
-- the data set and the hash of both. Regions that were not heard of for a week are forgotten.
local call = redis.call
local set = call('GET', KEYS[1])
if not set then
  set = ARGV[4] .. struct.pack('<d', 0)
  call('SETEX', KEYS[1], 63244800, set)
end
if tonumber(ARGV[3]) >= 0 then
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  call('ZADD', KEYS[2], string.format('%.0f', now - tonumber(ARGV[3])), ARGV[2])
  call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - 604800000000))
  call('EXPIRE', KEYS[2], 604800)
end
local text = ARGV[1] .. string.sub(set, 1, 16)
return text .. redis.sha1hex(text)
