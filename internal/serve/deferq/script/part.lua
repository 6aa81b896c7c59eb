-- Returns a part of a body. KEYS: body. ARGV: from which byte to which, the last included.
return { redis.call('GETRANGE', KEYS[1], ARGV[2], ARGV[3]) }
