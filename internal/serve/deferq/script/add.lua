-- Appends the entry of room.lua to its line: a stream of IDs, each with its number in the line. A line
-- that is new gets a group of consumers and a turn. It returns 'kept' and how many are before it.
local new, n = redis.call('EXISTS', KEYS[7]) == 0, 1
if not new then
  local last = redis.call('XREVRANGE', KEYS[7], '+', '-', 'COUNT', 1)
  n = number(last[1][2][4]) + 1
end
local sid = redis.call('XADD', KEYS[7], '*', 'id', ARGV[3], 'n', whole(n))
if new then
  redis.call('XGROUP', 'CREATE', KEYS[7], 'gateways', '0')
  redis.call('ZADD', KEYS[2], whole(now), ARGV[2])
end
redis.call('HSET', KEYS[8], 'record', ARGV[10], 'sid', sid, 'n', whole(n), 'state', 'waiting', 'attempts', '0',
  'reason', '', 'next', '0', 'expires', whole(now + number(ARGV[9])), 'size', whole(size))
if ARGV[11] ~= '' then redis.call('SET', KEYS[9], ARGV[11]) end
redis.call('ZADD', KEYS[3], whole(now), ARGV[3])
redis.call('HINCRBY', KEYS[6], ARGV[2], whole(size))
redis.call('HINCRBY', KEYS[1], 'waiting', '1')
redis.call('HINCRBY', KEYS[1], 'bytes', whole(size))
return { 'kept', before }
