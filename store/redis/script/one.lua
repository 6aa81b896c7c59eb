-- Decides one check, and grants as many of the copies as it has room for.
-- ARGV[1] goes on with the copies asked for and ends, if it is about leases, with their
-- name; ARGV[2] is the check.
--
-- The reply is packed numbers, between tag and sum: copies granted, now; then, as
-- multi.lua has it for each check, how many copies it got, what is left, in µs and
-- ticks when it is as good as new, and when the refused would pass or the admitted may
-- go ahead. When some copies were granted and not all, also when the next would pass; -1:
-- this check would let it.
local _, _, copies = unpack('<ddd', ARGV[1])
local arg = ARGV[2]
local kind, flags, key, id, cost, from = unpack('<BBI2c9d', arg)
local unit, asked, k, reserved = cost > 0 and cost or 1, copies, 0, 0
local lease = 0
if flags > 1 then reserved, from = unpack('<d', arg, from) end -- so many are to remain
if flags > 3 then lease, from = unpack('<d', arg, from) end -- for so long what is taken may be used
local box = kind < 5 and call('GET', KEYS[key]) or ''
--<box find>
--<fit>
if missed then return pack('<ddddd', tag, -1, now, missed, tag - 1 + now + missed) end
if moved then return pack('<ddddd', tag, -2, 1, moved, tag - 1 + moved) end
local granted = k
local left, reset, resett, delay, delayt, later, latert, state, till = 0, 0, 0, 0, 0, 0, 0
local short = granted > 0 and granted < copies
--<take>
if k == 0 then delay, delayt = later, latert end
if state then
  --<box change>
end
local sum = tag + granted + now + granted + left + reset + resett + delay + delayt
if short then
  return pack('<dddddddddddd', tag, granted, now, granted, left, reset, resett, delay, delayt,
    later, latert, sum + later + latert)
end
return pack('<dddddddddd', tag, granted, now, granted, left, reset, resett, delay, delayt, sum)
