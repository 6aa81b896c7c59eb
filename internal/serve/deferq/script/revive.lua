-- Puts a dead entry to the end of its line.
--
-- KEYS: meta, turns, waiting, dead, lines, line, entry. ARGV: the name of the line, the ID, the record, its
-- size, for how long it is kept in microseconds. It returns 1, or 0 if it is not dead.
local e = redis.call('HMGET', KEYS[7], 'state', 'size')
if e[1] ~= 'dead' then return { 0 } end
local sid, n = enqueue(KEYS[6], KEYS[2], ARGV[2], ARGV[3])
redis.call('HSET', KEYS[7], 'record', ARGV[4], 'sid', sid, 'n', n, 'state', 'waiting', 'reason', '', 'next', '0',
  'expires', whole(now + number(ARGV[6])), 'size', ARGV[5])
redis.call('ZREM', KEYS[4], ARGV[3])
redis.call('ZADD', KEYS[3], whole(now), ARGV[3])
redis.call('HINCRBY', KEYS[5], ARGV[2], ARGV[5])
redis.call('HINCRBY', KEYS[1], 'waiting', '1')
redis.call('HINCRBY', KEYS[1], 'bytes', whole(number(ARGV[5]) - number(e[2])))
redis.call('HINCRBY', KEYS[1], 'spare', whole(-number(e[2])))
return { 1 }
