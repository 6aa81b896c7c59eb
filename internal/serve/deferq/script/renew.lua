-- Says that the caller is alive, and still tries the first of some lines. KEYS: turns, and the lines. ARGV: the
-- caller, for how long it has them in microseconds, and of each line its name and the ID in the stream.
for i = 2, #KEYS do
  local name, sid = ARGV[2 * i], ARGV[2 * i + 1]
  if holder(KEYS[i], sid) == ARGV[2] then
    redis.call('XCLAIM', KEYS[i], 'gateways', ARGV[2], 0, sid, 'JUSTID')
    redis.call('ZADD', KEYS[1], whole(now + number(ARGV[3])), name)
  end
end
return {}
