-- Returns IDs of a set by their time. KEYS: waiting, done or dead. ARGV: from which on, to which.
return redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3])
