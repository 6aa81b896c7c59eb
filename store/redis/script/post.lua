-- Writes rows of the table that are newer than what is there.
--
-- KEYS[1] is the sorted set of look.lua, KEYS[2] one of the rows' names by the ms until which
-- they are kept, and the others are where the rows are. ARGV[1] is the tag of the reply,
-- ARGV[2] the epoch if the table has none, ARGV[3] how many rows it may have. Then follow for
-- each row its name, its revision, who wrote it, the ms until which it is kept, and its text.
-- A row is kept as REVISION WRITER MS TEXT. The reply is the tag, the size of the epoch, the
-- epoch, for each row a number, the version of the table at which it was written, and the size
-- and text of what is there if that is newer; and the hash of all that. The number is 1 if the
-- row was written, 0 if what is there is as new, 2 if there is no room, 3 if its time is over.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local now = math.floor(us / 1000)
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local epoch = ''
if first[2] and tonumber(first[2]) == 0 and #first[1] <= 65 then
  epoch = string.sub(first[1], 2)
else
  epoch = ARGV[2]
  redis.call('ZADD', KEYS[1], 0, '=' .. epoch)
end
local version = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
local count = redis.call('ZCOUNT', KEYS[1], '(0', '+inf')
local reply = {ARGV[1], struct.pack('<d', #epoch), epoch}
for i = 3, #KEYS do
  local at = 4 + (i - 3) * 5
  local name, rev, by, keep = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local old = redis.call('GET', KEYS[i])
  local score = redis.call('ZSCORE', KEYS[1], name)
  local oldrev, oldby = 0, 0
  if old and #old > 8192 then
    old = nil -- it is not ours
  end
  if old then
    local r, b = string.match(old, '^(%d+) (%d+) ')
    oldrev, oldby = tonumber(r) or 0, tonumber(b) or 0
  end
  if old and score and (oldrev > rev or oldrev == rev and oldby >= by) then
    reply[#reply + 1] = struct.pack('<ddd', 0, math.floor(tonumber(score)), #old) .. old
  elseif keep <= now then
    reply[#reply + 1] = struct.pack('<ddd', 3, 0, 0)
  elseif not score and count >= tonumber(ARGV[3]) then
    reply[#reply + 1] = struct.pack('<ddd', 2, 0, 0)
  else
    if not score then
      count = count + 1
    end
    version = math.max(math.floor(version) + 1, us)
    local seconds = math.min(math.ceil((keep - now) / 1000) + 1, 3153600000)
    redis.call('SETEX', KEYS[i], string.format('%.0f', seconds), table.concat({ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]}, ' '))
    redis.call('ZADD', KEYS[1], string.format('%.0f', version), name)
    redis.call('ZADD', KEYS[2], string.format('%.0f', keep), name)
    reply[#reply + 1] = struct.pack('<ddd', 1, version, 0)
  end
end
reply = table.concat(reply)
return reply .. redis.sha1hex(reply)
