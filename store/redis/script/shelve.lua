-- Puts a version of a text on a shelf, if the newest is the one that the caller knows.
--
-- KEYS[1] is the list of versions, as "NUMBER ID MICROSECONDS SIZE SUM LABEL", the newest last.
-- KEYS[2] is a list of the parts of the text, KEYS[3] where it is kept: a list of the ID and the
-- parts, in place of a version that is no longer kept. ARGV[1] is the tag of the reply, ARGV[2]
-- and ARGV[3] number and ID of the version that is to be the newest, 0 and '' if there is none,
-- ARGV[4] the ID of the new one, ARGV[5] how many parts there are, ARGV[6] how many versions
-- are kept, ARGV[7] the channel by which others are told, ARGV[8] "SIZE SUM LABEL". The reply is
-- the tag, a number, the size of the newest version as it is in the list, that version, and the
-- hash of all that. The number is 1 if it is put, 0 if another version is the newest, 2 if parts
-- are missing.
local last = redis.call('LINDEX', KEYS[1], -1) or ''
local number, id = string.match(last, '^(%d+) (%S+) ')
number, id = tonumber(number) or 0, id or ''
local done = 0
if id == ARGV[4] then
  done = 1 -- it was sent before, and the answer was lost
elseif number == tonumber(ARGV[2]) and id == ARGV[3] then
  local parts = tonumber(ARGV[5])
  if redis.call('LLEN', KEYS[2]) ~= parts then
    done = 2
  else
    local time = redis.call('TIME')
    done = 1
    redis.call('DEL', KEYS[3])
    redis.call('RPUSH', KEYS[3], ARGV[4])
    for i = 0, parts - 1 do
      redis.call('RPUSH', KEYS[3], redis.call('LINDEX', KEYS[2], i))
    end
    redis.call('DEL', KEYS[2])
    last = string.format('%.0f %s %.0f %s', number + 1, ARGV[4], time[1] * 1000000 + time[2], ARGV[8])
    redis.call('RPUSH', KEYS[1], last)
    redis.call('LTRIM', KEYS[1], '-' .. ARGV[6], -1)
    redis.pcall('PUBLISH', ARGV[7], ARGV[4]) -- without the permission, others find it themselves
  end
end
if done ~= 1 then redis.call('DEL', KEYS[2]) end
if #last > 16384 then last = '' end -- it is not ours
local reply = ARGV[1] .. struct.pack('<dd', done, #last) .. last
return reply .. redis.sha1hex(reply)
