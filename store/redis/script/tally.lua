-- Adds up what instances have counted of one counter, each by itself.
--
-- KEYS[1] is the state. ARGV[1] is the tag of the reply, ARGV[2] the 16 bytes of the instance.
-- ARGV[3] are numbers: 1 to forget everything or 0, the generation that the instance knows, the
-- number of the tally, its demand, for how many us that counts, and for each part of time its
-- start, its end and its count, which is all that the instance has ever counted in it.
--
-- The state is the generation, how many parts and how many instances follow; for each part its
-- start, its end and its total; for each instance its 16 bytes, the number of its last tally,
-- until which us its demand counts, its demand, how many parts follow, and for each the start
-- and the count, by which totals have grown. A part is forgotten when it ends, and an instance
-- with its last part, or an hour after its last word: it then comes back under another name.
--
-- The reply is the tag, the generation, the demand of the other instances, and for each part its
-- start and its total; and the sum of all.
local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local forget, known, number, demand, lasts = unpack('<ddddd', ARGV[3])

local generation, starts, ends, totals = 0, {}, {}, {}
local names, instances = {}, {}
local dropped = false -- parts, so that those of instances have to be looked through
local state = call('GET', KEYS[1])
if state then
  local partcount, instancecount
  generation, partcount, instancecount = unpack('<ddd', state)
  local at = 25
  for _ = 1, partcount do
    local s, e, t = unpack('<ddd', state, at)
    at = at + 24
    if e > now then
      starts[#starts + 1], ends[s], totals[s] = s, e, t
    else
      dropped = true
    end
  end
  for _ = 1, instancecount do
    local name, from, size = sub(state, at, at + 15), at, nil
    local one = {}
    one.number, one.till, one.demand, size = unpack('<dddd', state, at + 16)
    at = at + 48
    one.live = size > 0
    if dropped or name == ARGV[2] then
      one.counts, one.live = {}, false
      for i = at, at + 16 * size - 1, 16 do
        local s, c = unpack('<dd', state, i)
        if ends[s] then
          one.counts[s], one.live = c, true
        end
      end
    end
    at = at + 16 * size
    one.text = sub(state, from, at - 1)
    if one.till + 3600000000 > now and (one.live or one.till > now) then
      names[#names + 1], instances[name] = name, one
    end
  end
end

if forget == 1 then
  generation = math.max(generation, known) + 1
  starts, ends, totals, names, instances = {}, {}, {}, {}, {}
elseif known >= generation then
  generation = known
  local own = instances[ARGV[2]]
  if not own then
    own = {number = -1, counts = {}}
    names[#names + 1], instances[ARGV[2]] = ARGV[2], own
  end
  if number > own.number then
    own.number, own.till, own.demand = number, now + lasts, demand
    for at = 41, #ARGV[3], 24 do
      local s, e, c = unpack('<ddd', ARGV[3], at)
      if e > now then
        if not ends[s] then
          starts[#starts + 1], ends[s], totals[s] = s, e, 0
        end
        totals[s] = math.max(0, totals[s] + c - (own.counts[s] or 0))
        own.counts[s] = c
      end
    end
  end
end

local last, others = now, 0
local texts, reply = {}, {}
local sum = unpack('<d', ARGV[1]) + generation
for i = 1, #starts do
  local s = starts[i]
  texts[i] = pack('<ddd', s, ends[s], totals[s])
  last = math.max(last, ends[s])
end
for i = 1, #names do
  local one = instances[names[i]]
  if one.counts then
    local counts = {}
    for j = 1, #starts do
      local c = one.counts[starts[j]]
      if c then
        counts[#counts + 1] = pack('<dd', starts[j], c)
      end
    end
    one.text = names[i] .. pack('<dddd', one.number, one.till, one.demand, #counts) .. table.concat(counts)
  end
  texts[#texts + 1] = one.text
  if names[i] ~= ARGV[2] and one.till > now then
    others = others + one.demand
  end
  last = math.max(last, one.till)
end
if generation > 0 then
  last = math.max(last, now + 3600000000)
end
local seconds = math.min(math.ceil((last - now) / 1000000) + 1, 63244800)
call('SETEX', KEYS[1], string.format('%.0f', seconds), pack('<ddd', generation, #starts, #names) .. table.concat(texts))

sum = sum + others
reply[1] = ARGV[1] .. pack('<dd', generation, others)
for i = 1, #starts do
  local s = starts[i]
  sum = sum + s + totals[s]
  reply[i + 1] = pack('<dd', s, totals[s])
end
return table.concat(reply) .. pack('<d', sum)
