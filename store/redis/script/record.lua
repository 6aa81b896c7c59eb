-- Reads the record of a reservation: the tag, the SHA-1 of the record, the record. Without
-- one it is the tag alone.
local tag = string.sub(ARGV[1], 1, 8)
local record = redis.call('GET', KEYS[1])
if not record then return tag end
return tag .. redis.sha1hex(record) .. record
