-- What a script begins with that only looks: commands that would write do nothing. A law that
-- is asked about the counter of another one, or after the clock was set back, would bring the
-- state to its own numbers and time.
local reads = {
  GET = true, LLEN = true, LINDEX = true, LRANGE = true,
  ZRANGE = true, ZRANGEBYSCORE = true, ZCOUNT = true, ZSCORE = true,
}
call = function(name, ...)
  if reads[name] then return redis.call(name, ...) end
end
