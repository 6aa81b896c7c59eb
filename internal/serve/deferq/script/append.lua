-- Appends a record to a stream of the user, unless that is full. KEYS: the stream. ARGV: how many entries it
-- may have, 0 for any number, and fields with their values. It returns the ID in the stream, '' if it is full.
if number(ARGV[2]) > 0 and redis.call('XLEN', KEYS[1]) >= number(ARGV[2]) then return { '' } end
return { redis.call('XADD', KEYS[1], '*', unpack(ARGV, 3)) }
