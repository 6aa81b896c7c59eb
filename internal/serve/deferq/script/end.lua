-- Takes an entry out of its line, and keeps what became of it.
--
-- KEYS: meta, turns, waiting, done or dead, lines, line, entry, body. ARGV: the name of the line, the ID, the
-- caller or '' for an operator, the state, attempts, the reason, the record, its size, 1 if its body is
-- deleted, how many bytes all may take, its ID in the stream as the caller knows it. It returns 'ended', also if it had ended
-- before; 'over' if it has and all take more bytes than that; 'none'; 'lost' if another gateway has taken it over; 'busy' if an
-- operator asks and a gateway is trying it.
local e = redis.call('HMGET', KEYS[7], 'state', 'sid', 'size')
if e[1] == 'done' or e[1] == 'dead' then return { 'ended' } end
local sid = e[2] or ARGV[12]
if sid == '' then return { 'none' } end
local by = holder(KEYS[6], sid)
if ARGV[4] == '' then
  if by and by ~= 'nobody' then return { 'busy' } end
elseif by ~= ARGV[4] then
  return { 'lost' }
end
redis.call('XACK', KEYS[6], 'gateways', sid)
redis.call('XDEL', KEYS[6], sid)
local freed = number(e[3])
if redis.call('XLEN', KEYS[6]) == 0 then
  freed = number(redis.call('HGET', KEYS[5], ARGV[2])) -- with those whose size is not known any more
  redis.call('DEL', KEYS[6])
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('HDEL', KEYS[5], ARGV[2])
else
  redis.call('HINCRBY', KEYS[5], ARGV[2], whole(0 - freed)) -- 0 and not -0
  if by then redis.call('ZADD', KEYS[2], whole(now), ARGV[2]) end -- it was the first
end
redis.call('ZREM', KEYS[3], ARGV[3])
redis.call('ZADD', KEYS[4], whole(now), ARGV[3])
if not e[2] then redis.call('HSET', KEYS[7], 'expires', '0', 'next', '0', 'n', '0') end -- somebody has deleted it
redis.call('HSET', KEYS[7], 'state', ARGV[5], 'attempts', ARGV[6], 'reason', ARGV[7], 'record', ARGV[8], 'size', ARGV[9])
if ARGV[10] == '1' then redis.call('DEL', KEYS[8]) end
redis.call('HINCRBY', KEYS[1], 'waiting', '-1')
local bytes = redis.call('HINCRBY', KEYS[1], 'bytes', whole(number(ARGV[9]) - freed))
redis.call('HINCRBY', KEYS[1], 'spare', ARGV[9])
if bytes > number(ARGV[11]) then return { 'over' } end
return { 'ended' }
