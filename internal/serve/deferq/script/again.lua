-- Puts an entry back to the front of its line, for nobody in particular.
--
-- KEYS: turns, line, entry. ARGV: the name of the line, the caller, the ID in the stream, attempts, in how
-- many microseconds it is tried again, the reason. It returns 'again', or 'lost' if another gateway
-- has taken it over.
if holder(KEYS[2], ARGV[4]) ~= ARGV[3] then return { 'lost' } end
redis.call('XCLAIM', KEYS[2], 'gateways', 'nobody', 0, ARGV[4], 'JUSTID')
local due = whole(now + number(ARGV[6]))
redis.call('HSET', KEYS[3], 'state', 'waiting', 'attempts', ARGV[5], 'next', due, 'reason', ARGV[7])
redis.call('ZADD', KEYS[1], due, ARGV[2])
return { 'again' }
