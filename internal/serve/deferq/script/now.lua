-- What all scripts begin with: the time of Redis in microseconds, and numbers that may be missing.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function number(text) return tonumber(text) or 0 end
local function whole(n) return string.format('%.0f', n) end

-- holder returns who tries an entry of a line; nil if nobody has it, nobody for one that waits again.
local function holder(line, sid)
  if redis.call('EXISTS', line) == 0 then return nil end
  local pending = redis.call('XPENDING', line, 'gateways', sid, sid, 1)
  return pending[1] and pending[1][2]
end

