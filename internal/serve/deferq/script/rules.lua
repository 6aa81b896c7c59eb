-- Notes names of rules that have entries, and returns all of them. KEYS: rules. ARGV: names.
for i = 2, #ARGV do redis.call('SADD', KEYS[1], ARGV[i]) end
return redis.call('SMEMBERS', KEYS[1])
