-- Reads a part of a list.
--
-- KEYS[1] is the list. ARGV[1] is the tag of the reply, ARGV[2] the number of the first element,
-- ARGV[3] how many to read at most, ARGV[4] how many bytes of one at most: one that is longer is
-- sent empty. The reply is the tag, the length of the list, for each element its size and text,
-- and the hash of all that.
local from = tonumber(ARGV[2])
local reply = {ARGV[1] .. struct.pack('<d', redis.call('LLEN', KEYS[1]))}
local part = {}
if tonumber(ARGV[3]) > 0 then
  part = redis.call('LRANGE', KEYS[1], from, from + tonumber(ARGV[3]) - 1)
end
for i, text in ipairs(part) do
  if #text > tonumber(ARGV[4]) then text = '' end
  reply[i + 1] = struct.pack('<d', #text) .. text
end
reply = table.concat(reply)
return reply .. redis.sha1hex(reply)
