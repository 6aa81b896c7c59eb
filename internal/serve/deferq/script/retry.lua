-- Makes a waiting entry due. KEYS: turns, line, entry. ARGV: the name of the line. It returns the state that
-- the entry was in, '' if there is none, 'trying' if a gateway has it.
local e = redis.call('HMGET', KEYS[3], 'state', 'sid')
if not e[1] then return { '' } end
if e[1] == 'done' or e[1] == 'dead' then return { e[1] } end
local by = holder(KEYS[2], e[2])
if by and by ~= 'nobody' then return { 'trying' } end
redis.call('HSET', KEYS[3], 'next', whole(now))
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
if first and first[1] == e[2] then redis.call('ZADD', KEYS[1], whole(now), ARGV[2]) end
return { 'waiting' }
