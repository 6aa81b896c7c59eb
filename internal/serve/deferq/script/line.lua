-- enqueue appends an ID to a line: a stream of IDs, each with its number in the line. A line that is new
-- gets a group of consumers and a turn. It returns the ID in the stream and the number.
local function enqueue(line, turns, name, id)
  local new, n = redis.call('EXISTS', line) == 0, 1
  if not new then
    local last = redis.call('XREVRANGE', line, '+', '-', 'COUNT', 1)
    n = number(last[1][2][4]) + 1
  end
  local sid = redis.call('XADD', line, '*', 'id', id, 'n', whole(n))
  if new then
    redis.call('XGROUP', 'CREATE', line, 'gateways', '0')
    redis.call('ZADD', turns, whole(now), name)
  end
  return sid, whole(n)
end

