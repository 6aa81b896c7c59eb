-- Adds up what instances have counted of one counter, each by itself.
--
-- KEYS[1] is the state. Of a counter of several regions, KEYS[2] is the data set and its last
-- change, KEYS[3] a sorted set of counters by their last change, KEYS[4] one by when they end, and
-- ARGV[4] are 16 bytes that name the data set if it has no name.
-- ARGV[1] is the tag of the reply. ARGV[2] are numbers: 1 to forget everything or 0; the
-- generation that is known; the number of the region that this server is of, or 0; 1 if
-- another region tells this or 0; how many parts of time follow; for each its start and its end.
-- ARGV[3] are instances: 16 bytes each, the number of the tally, for how many us its demand
-- counts, its demand, its region, how many parts follow, and for each the start and the count,
-- which is all that the instance has ever counted in it.
--
-- The state is the generation and the change it came with, how many parts and how many
-- instances follow; for each part its start, its end, its total and how much of that is of other
-- regions; for each instance its 16 bytes, the number of its last tally, until which us its
-- demand counts, its demand, its region, the last change of its counts, how many parts follow,
-- and for each the start and the count, by which totals have grown. A part is forgotten when it
-- ends, and an instance with its last part; outside of regions also an hour after its last
-- word: it then comes back under another name.
--
-- The reply is the tag, the generation, the demand of other instances, and for each part its
-- start, its total and how much is of other regions; and the sum of all. Another region is
-- told no parts.
local call, pack, unpack, sub = redis.call, struct.pack, struct.unpack, string.sub
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local forget, known, home, merge, given = unpack('<ddddd', ARGV[2])
local told = {} -- where instances are in ARGV[3]
local at = 1
while at <= #ARGV[3] do
  told[sub(ARGV[3], at, at + 15)] = at
  at = at + 56 + 16 * unpack('<d', ARGV[3], at + 48)
end

local generation, reset, starts, ends, totals, abroad = 0, 0, {}, {}, {}, {}
local names, instances = {}, {}
local dropped = false -- parts, so that those of instances have to be looked through
local state = call('GET', KEYS[1])
if state then
  local partcount, instancecount
  generation, reset, partcount, instancecount = unpack('<dddd', state)
  at = 33
  for _ = 1, partcount do
    local s, e, t, a = unpack('<dddd', state, at)
    at = at + 32
    if e > now then
      starts[#starts + 1], ends[s], totals[s], abroad[s] = s, e, t, a
    else
      dropped = true
    end
  end
  for _ = 1, instancecount do
    local name, from, size = sub(state, at, at + 15), at, nil
    local one = {}
    one.number, one.till, one.demand, one.region, one.change, size = unpack('<dddddd', state, at + 16)
    at = at + 64
    one.live = size > 0
    if dropped or told[name] then
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
    if (one.region ~= 0 or one.till + 3600000000 > now) and (one.live or one.till > now) then
      names[#names + 1], instances[name] = name, one
    end
  end
end

local change = 0 -- the number of this one, once there is something new
local function changed()
  if change == 0 and home ~= 0 then
    local set = call('GET', KEYS[2])
    local id = ARGV[4]
    if set then
      id, change = sub(set, 1, 16), unpack('<d', set, 17)
    end
    change = change + 1
    call('SETEX', KEYS[2], 63244800, id .. pack('<d', change))
    call('ZADD', KEYS[3], string.format('%.0f', change), KEYS[1])
  end
  return change
end

if forget == 1 or merge == 1 and known > generation then
  generation = forget == 1 and math.max(generation, known) + 1 or known
  reset = changed()
  starts, ends, totals, abroad, names, instances = {}, {}, {}, {}, {}, {}
end
if forget == 0 and known >= generation then
  if known > generation then
    generation, reset = known, changed()
  end
  local over = {}
  for i = 41, 40 + 16 * given, 16 do
    local s, e = unpack('<dd', ARGV[2], i)
    over[s] = e
  end
  for name, from in pairs(told) do
    local number, lasts, demand, region, size = unpack('<ddddd', ARGV[3], from + 16)
    local own = instances[name]
    if not own then
      own = {number = -1, counts = {}, region = region, change = 0}
      names[#names + 1], instances[name] = name, own
    end
    if number > own.number then
      own.number, own.till, own.demand = number, now + lasts, demand
      if region ~= 0 and own.region ~= region then
        own.region, own.change = region, changed()
      end
      for i = from + 56, from + 55 + 16 * size, 16 do
        local s, c = unpack('<dd', ARGV[3], i)
        local was = own.counts[s]
        if over[s] > now and was ~= c then
          if not ends[s] then
            starts[#starts + 1], ends[s], totals[s], abroad[s] = s, over[s], 0, 0
          end
          totals[s] = math.max(0, totals[s] + c - (was or 0))
          if home ~= 0 and own.region ~= home then
            abroad[s] = math.max(0, abroad[s] + c - (was or 0))
          end
          own.counts[s], own.change = c, math.max(own.change, changed())
        end
      end
    end
  end
end

local last, others = now, 0
local texts, reply = {}, {}
for i = 1, #starts do
  local s = starts[i]
  texts[i] = pack('<dddd', s, ends[s], totals[s], abroad[s])
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
    one.text = names[i] .. pack('<dddddd', one.number, one.till, one.demand, one.region, one.change, #counts) .. table.concat(counts)
  end
  texts[#texts + 1] = one.text
  if not told[names[i]] and one.till > now then
    others = others + one.demand
  end
  last = math.max(last, one.till)
end
if generation > 0 then
  last = math.max(last, now + 3600000000)
end
local seconds = math.min(math.ceil((last - now) / 1000000) + 1, 63244800)
call('SETEX', KEYS[1], string.format('%.0f', seconds), pack('<dddd', generation, reset, #starts, #names) .. table.concat(texts))
if change > 0 then
  call('ZADD', KEYS[4], string.format('%.0f', now + (seconds + 5) * 1000000), KEYS[1])
end

local sum = unpack('<d', ARGV[1]) + generation + others
reply[1] = ARGV[1] .. pack('<dd', generation, others)
if merge == 0 then
  for i = 1, #starts do
    local s = starts[i]
    sum = sum + s + totals[s] + abroad[s]
    reply[i + 1] = pack('<ddd', s, totals[s], abroad[s])
  end
end
return table.concat(reply) .. pack('<d', sum)
