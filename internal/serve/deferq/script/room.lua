-- Says whether an entry has a place; add.lua goes on from here.
--
-- KEYS: meta, turns, waiting, done, dead, lines, line, entry, body. ARGV from 2 on: the name of the line,
-- the ID, its size, the bounds: places of the rule, of the line, bytes of the line, bytes of all; for how
-- long it is kept in microseconds, its record, its body. Without an ID nothing is added.
--
-- It returns 'full'; or 'room' and IDs of those that have ended and could make room; or 'free'.
local size = number(ARGV[4])
local known = redis.call('HMGET', KEYS[1], 'waiting', 'bytes', 'spare')
local waiting, bytes, spare = number(known[1]), number(known[2]), number(known[3])
local before = redis.call('XLEN', KEYS[7])
local own = number(redis.call('HGET', KEYS[6], ARGV[2]))
if waiting >= number(ARGV[5]) or before >= number(ARGV[6]) or own + size > number(ARGV[7]) or bytes - spare + size > number(ARGV[8]) then
  return { 'full' }
end
if ARGV[3] == '' then return { 'free' } end
if bytes + size > number(ARGV[8]) then
  local oldest = redis.call('ZRANGE', KEYS[4], 0, 63)
  if #oldest == 0 then oldest = redis.call('ZRANGE', KEYS[5], 0, 63) end
  table.insert(oldest, 1, 'room')
  return oldest
end
