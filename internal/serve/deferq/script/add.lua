-- Appends the entry of room.lua to its line. It returns 'kept' and how many are before it.
local sid, n = enqueue(KEYS[7], KEYS[2], ARGV[2], ARGV[3])
redis.call('HSET', KEYS[8], 'record', ARGV[10], 'sid', sid, 'n', n, 'state', 'waiting', 'attempts', '0',
  'reason', '', 'next', '0', 'expires', whole(now + number(ARGV[9])), 'size', whole(size))
if ARGV[11] ~= '' then redis.call('SET', KEYS[9], ARGV[11]) end
redis.call('ZADD', KEYS[3], whole(now), ARGV[3])
redis.call('HINCRBY', KEYS[6], ARGV[2], whole(size))
redis.call('HINCRBY', KEYS[1], 'waiting', '1')
redis.call('HINCRBY', KEYS[1], 'bytes', whole(size))
return { 'kept', before }
