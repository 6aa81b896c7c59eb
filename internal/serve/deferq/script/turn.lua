-- Gives the caller the line whose turn it is, and puts its next turn off until another gateway may look
-- whether the caller is dead.
--
-- KEYS: turns, by time. ARGV: for how long the caller has it, in microseconds, and the longest that a line can wait. It returns the
-- name of the line; or '' and in how many microseconds the next one is due, -1 if there is none.
local due = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if #due == 0 then return { '', -1 } end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if number(last[2]) > now + number(ARGV[3]) then due = { last[1], whole(now) } end -- the clock was set back
if number(due[2]) > now then return { '', number(due[2]) - now } end
redis.call('ZADD', KEYS[1], whole(now + number(ARGV[2])), due[1])
return { due[1] }
