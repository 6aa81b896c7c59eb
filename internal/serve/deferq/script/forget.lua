-- Forgets entries that have ended. KEYS: meta, done, dead, and of each one entry and body. ARGV: their IDs.
local n = 0
for i = 2, #ARGV do
  local entry, body = KEYS[2 * i], KEYS[2 * i + 1]
  local e = redis.call('HMGET', entry, 'state', 'size')
  if not e[1] or e[1] == 'done' or e[1] == 'dead' then
    redis.call('DEL', entry)
    redis.call('DEL', body)
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('ZREM', KEYS[3], ARGV[i])
    redis.call('HINCRBY', KEYS[1], 'bytes', whole(-number(e[2])))
    redis.call('HINCRBY', KEYS[1], 'spare', whole(-number(e[2])))
    n = n + 1
  end
end
return { n }
