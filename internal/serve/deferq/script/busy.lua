-- Returns 1 if a line has entries. KEYS: line.
return { redis.call('EXISTS', KEYS[1]) }
