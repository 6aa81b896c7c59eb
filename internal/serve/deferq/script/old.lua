-- Returns IDs of those that have ended long ago. KEYS: done or dead. ARGV: how long ago in microseconds, how many.
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', whole(now - number(ARGV[2])), 'LIMIT', 0, ARGV[3])
