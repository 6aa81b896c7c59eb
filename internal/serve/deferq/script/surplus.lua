-- Returns IDs of a few that have ended first, if all take more bytes than they may: results, and dead letters if there are no
-- results. KEYS: meta, done, dead. ARGV: how many bytes all may take.
if number(redis.call('HGET', KEYS[1], 'bytes')) <= number(ARGV[2]) then return {} end
local first = redis.call('ZRANGE', KEYS[2], 0, 7)
if #first == 0 then first = redis.call('ZRANGE', KEYS[3], 0, 7) end
return first
