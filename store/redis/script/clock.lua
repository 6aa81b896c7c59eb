-- Returns Redis' time in us. KEYS[1] says which server of a cluster is asked. ARGV[1] is the tag
-- of the reply.
local tag = struct.unpack('<d', ARGV[1])
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
return struct.pack('<ddd', tag, us, tag + us)
