-- Looks at the table of rows: what has changed, and which questions are open. Writes nothing.
--
-- KEYS[1] is a sorted set of the rows' names by the version at which they were written, with
-- the epoch as =EPOCH at 0; KEYS[2] one of open questions by the us at which they were asked.
-- ARGV[1] is the tag of the reply, ARGV[2] the version that the caller knows, ARGV[3] how many
-- rows to list at most, ARGV[4] how long a name may be, ARGV[5] for how many us a question is
-- open, ARGV[6] how many to list at most. The reply is the tag, Redis' time in us, the version
-- of the table, the size of the epoch, how many rows are listed, the epoch, for each row its
-- version, the size of its name and the name, for each question the size of its name and the
-- name, and the hash of all that.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local epoch, version, rows = '', 0, {}
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if first[2] and tonumber(first[2]) == 0 and #first[1] <= 65 then
  epoch = string.sub(first[1], 2)
end
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if last[2] then
  version = math.floor(tonumber(last[2]))
end
if version > tonumber(ARGV[2]) then
  rows = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
end
local reply, listed = {}, 0
for i = 1, #rows, 2 do
  if #rows[i] <= tonumber(ARGV[4]) then
    listed = listed + 1
    reply[listed] = struct.pack('<dd', math.floor(tonumber(rows[i + 1])), #rows[i]) .. rows[i]
  end
end
local since = string.format('(%.0f', us - tonumber(ARGV[5]))
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], since, '+inf', 'LIMIT', 0, ARGV[6])) do
  if #name <= tonumber(ARGV[4]) then
    reply[#reply + 1] = struct.pack('<d', #name) .. name
  end
end
local text = ARGV[1] .. struct.pack('<dddd', us, version, #epoch, listed) .. epoch .. table.concat(reply)
return text .. redis.sha1hex(text)
