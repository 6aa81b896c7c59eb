-- Returns the number of the first of a line; 0 if it is empty. KEYS: line.
if redis.call('EXISTS', KEYS[1]) == 0 then return { 0 } end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
return { first and first[2][4] or 0 }
