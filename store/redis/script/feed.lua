-- Lists what another region has to be told of the counters of several regions.
--
-- KEYS[1] is the data set and its last change, KEYS[2] a sorted set of counters by their last
-- change, KEYS[3] one by when they end, KEYS[4] who asks for the other region, KEYS[5] what that
-- one has saved. ARGV[1] is the tag of the reply, ARGV[2] who asks, ARGV[3] for how many seconds
-- nobody else may, ARGV[4] the change after which to begin, ARGV[5] the number of the region whose
-- instances are listed, if they have changed since, or 0 for those of all regions, changed or not,
-- ARGV[6] what to save, ARGV[7] how many counters to list and ARGV[8] how many bytes, at most.
--
-- The reply is the tag, 1 or, if somebody else asks, 0; the last change that is listed, 1 if
-- there are more, how many counters are left out as they are too large, how many follow, the sizes of the data set's name and of what was saved,
-- and these two; for each counter the sizes of its key and of the rest, the key, the generation, how
-- many parts and how many instances follow, for each part its start and end, and each instance as
-- in the state: see tally.lua. Behind that, the hash of all. If somebody else asks, all numbers are
-- 0 but the size of the data set's name, only that name follows, and nothing is saved.
local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local set = call('GET', KEYS[1]) or ''
local holder = call('GET', KEYS[4])
if holder and holder ~= ARGV[2] then
  local text = ARGV[1] .. pack('<ddddddd', 0, 0, 0, 0, 0, math.min(#set, 16), 0) .. sub(set, 1, 16)
  return text .. redis.sha1hex(text)
end
call('SETEX', KEYS[4], ARGV[3], ARGV[2])
if ARGV[6] ~= '' then
  call('SETEX', KEYS[5], 604800, ARGV[6])
end
local saved = call('GET', KEYS[5]) or ''
local time = call('TIME')
for _, key in ipairs(call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', time[1] * 1000000 + time[2]), 'LIMIT', 0, 1000)) do
  call('ZREM', KEYS[2], key)
  call('ZREM', KEYS[3], key)
end

local since, own, most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[8])
local list = call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[4], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[7])
local last, more = ARGV[4], #list == 2 * tonumber(ARGV[7]) and 1 or 0
local left, size, texts = 0, 0, {}
for i = 1, #list, 2 do
  local state = call('GET', list[i])
  local text = ''
  if state then
    local generation, reset, partcount, instancecount = unpack('<dddd', state)
    local some, at, ends = {}, 33, {}
    for j = 1, partcount do
      ends[j] = sub(state, at, at + 15)
      at = at + 32
    end
    for _ = 1, instancecount do
      local region, change, counts = unpack('<ddd', state, at + 40)
      local from = at
      at = at + 64 + 16 * counts
      if region ~= 0 and (own == 0 or region == own and change > since) then
        some[#some + 1] = sub(state, from, at - 1)
      end
    end
    if #some > 0 or reset > 0 and (own == 0 or reset > since) then
      text = pack('<ddd', generation, #ends, #some) .. table.concat(ends) .. table.concat(some)
      text = pack('<dd', #list[i], #text) .. list[i] .. text
    end
    if #text > 3 * most then
      text, left = '', left + 1
    end
  end
  if size > 0 and size + #text > most then
    more = 1
    break
  end
  last = list[i + 1]
  if text ~= '' then
    texts[#texts + 1], size = text, size + #text
  end
end
local text = ARGV[1] .. pack('<ddddddd', 1, tonumber(last), more, left, #texts, math.min(#set, 16), #saved)
text = text .. sub(set, 1, 16) .. saved .. table.concat(texts)
return text .. redis.sha1hex(text)
