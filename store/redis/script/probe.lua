#!lua flags=allow-cross-slot-keys,no-writes
-- Finds out whether a master of a cluster can be sent batches of keys in several slots: it
-- must let a script read a key of another slot than KEYS, and must not let it read one of
-- another master. ARGV[1] is the tag, ARGV[2] a key of this master, ARGV[3] one of another,
-- if there is one. The reply is 1 if so, otherwise 0, between tag and sum.
local tag = struct.unpack('<d', ARGV[1])
local here = redis.pcall('EXISTS', ARGV[2])
local able = type(here) == 'number' and 1 or 0
if ARGV[3] and type(redis.pcall('EXISTS', ARGV[3])) ~= 'table' then able = 0 end
return struct.pack('<ddd', tag, able, tag + able)
