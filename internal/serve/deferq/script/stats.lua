-- Returns how full it is. KEYS: meta, turns, waiting, done, dead.
local known = redis.call('HMGET', KEYS[1], 'waiting', 'bytes')
local oldest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local age = -1
if oldest[2] then age = math.max(now - number(oldest[2]), 0) end
return { number(known[1]), number(known[2]), redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[4]), redis.call('ZCARD', KEYS[5]), age }
