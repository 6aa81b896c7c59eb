-- Returns an entry. KEYS: entry, body. ARGV: 1 if it is being tried from now on, unless it has ended. It
-- returns nothing if there is none; else record, state, attempts, reason, in how many microseconds it
-- expires and is next, its number in the line, its ID in the stream, and how long its body is.
local e = redis.call('HMGET', KEYS[1], 'record', 'state', 'attempts', 'reason', 'expires', 'next', 'n', 'sid')
if not e[1] then return {} end
if ARGV[2] == '1' and e[2] == 'waiting' then
  redis.call('HSET', KEYS[1], 'state', 'trying')
  e[2] = 'trying'
end
return { e[1], e[2], e[3], e[4], number(e[5]) - now, number(e[6]) - now, e[7], e[8], redis.call('STRLEN', KEYS[2]) }
