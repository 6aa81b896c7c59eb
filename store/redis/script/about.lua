-- Reads what nodes have told about themselves.
--
-- KEYS are where they did, ARGV[1] the tag of the reply, ARGV[2] how long a text may be: none
-- that is longer is sent. The reply is the tag, for each key the size of its text and the
-- text, and the hash of all that.
local reply = {ARGV[1]}
for i, key in ipairs(KEYS) do
  local text = redis.pcall('GET', key)
  if type(text) ~= 'string' or #text > tonumber(ARGV[2]) then text = '' end
  reply[i + 1] = struct.pack('<d', #text) .. text
end
reply = table.concat(reply)
return reply .. redis.sha1hex(reply)
