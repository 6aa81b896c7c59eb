-- token_bucket (GCRA) and leaky_bucket (departure times), as internal/algo/bucket.go
-- has them. The state is, as '<dI2ddB', 27 bytes:
--   the instant at which it has drained, in µs and ticks, the latter + 32768
--   the pace it drains at: what one event takes, in ticks
--   when it was written, in µs, and the number of this format, 2
-- and in format 3, which is written while events may be out on leases, as '<dd':
--   hold, for how long they may be used, in µs, and how many events refill meanwhile
-- Format 1 was the first 18 bytes of that. A node that writes it reads the first 18 bytes of
-- any, and cuts off what is beyond the largest limit it knows of; less of it, and nothing
-- below an hour, because of the + 32768, which was the mark of what is booked ahead. A state
-- without the rest counts as written just now. Whatever a later format adds comes behind, so
-- that nodes of this one can read it.

--:help
-- They are made when they are first needed, which is seldom.
local takes, count, after, pour

--:make
local exact = 9007199254740992 -- 2^53

-- takes is how long n events of em ticks take.
takes = function(n, em)
  local us = floor(em / 1024)
  local ticks = n * (em - us * 1024)
  local more = floor(ticks / 1024)
  return n * us + more, ticks - more * 1024
end

-- count is how many events of em ticks fit into a time, rounded down. Its ticks
-- may be beyond 2^53 and then were rounded; what is left over tells, exactly.
count = function(us, ticks, em)
  local all = us * 1024 + ticks
  local n = floor(all / em)
  if all < exact and all > -exact then return n end
  local taken, rest = takes(n, em)
  local left = (us - taken) * 1024 + (ticks - rest)
  if left < 0 then return n - 1 elseif left >= em then return n + 1 end
  return n
end

-- after reports whether one time is longer than another. The sign is right even
-- where the difference is beyond 2^53.
after = function(us, ticks, than, thanticks)
  return (us - than) * 1024 + (ticks - thanticks) > 0
end

-- pour returns the state of a level at an instant, and when it says nothing any more.
pour = function(us, ticks, pace, at, hold, kept)
  if hold > 0 then
    return pack('<dI2ddBdd', at + us, ticks + 32768, pace, at, 3, hold, kept), at + us + 1 + hold
  end
  if us == 0 and ticks == 0 then return '', 0 end
  return pack('<dI2ddB', at + us, ticks + 32768, pace, at, 2), at + us + 1
end

--:convert
--<muldiv help>
-- convert is how long the events that take a time at the pace old take at the pace em,
-- rounded down, and whether something was cut off.
local function convert(us, ticks, old, em)
  local n = count(us, ticks, old)
  local taken, rest = takes(n, old)
  local more, cut = muldiv((us - taken) * 1024 + (ticks - rest), em, old)
  us, ticks = takes(n, em)
  more = ticks + more
  local carry = floor(more / 1024)
  return us + carry, more - carry * 1024, cut > 0
end

--:vars
em, cap, leaky, wait, waitt, tau, taut, us, t, own, ownt, pace, lag, changed, room, turns, level, hold, kept, held, freed

--:advance
-- The level is the time that what was charged still takes to drain. Mostly it is below 2^50
-- ticks, twelve days, at the pace of this law, and nobody waits: then level is that, in one
-- number, and nothing else is needed. Otherwise us and t are the level under this law, own and
-- ownt the same at its own pace. Those differ only while the level is above what this law holds.
-- lag is how far the clock is behind the instant that is decided at. changed says that the state
-- is to be kept as it is now, even if nothing is charged.
em, cap, leaky, wait, waitt = unpack('<ddBdI2', arg, from)
local drained, ticks, old, written, bytes = 0, 0, em, now
hold, kept, held = 0, 0, 0
if at then
  if #box > at + 25 then
    bytes, drained, ticks, old, written = unpack('<I2dI2dd', box, at - 2)
    if bytes < 27 then
      written = now
    elseif bytes > 42 then
      hold, kept = unpack('<dd', box, at + 27)
    end
  else
    drained, ticks, old = unpack('<dI2d', box, at)
  end
  if ticks >= 32768 then ticks = ticks - 32768 end
end
-- Events on leases are used up to hold later than they were charged, and meanwhile others
-- have refilled. So that no stretch of time has too many, what refills in hold stays in the
-- bucket, for everybody, until it has been full for that long: what the quickest of the
-- versions of the limit refills, and never more than half of the bucket.
if drained + hold < now then hold, kept = 0, 0 end
if lease > hold then hold = lease end
if hold > 0 then
  freed = drained + hold - now + 1 -- until nothing is held back
  if freed < 1 then freed = 1 end -- only this one holds something back
  held = -floor(-hold * 1024 / em)
  if held > kept then kept = held end
  held = kept
  if held > floor(cap / 2) then held = floor(cap / 2) end
  -- What has to remain for others is a share of what is not held back: both together are never all.
  reserved = held + reserved + floor(-reserved * (held / cap))
end
if leaky == 2 then leaky, old = 0, em end -- raw time: whatever pace it was written at
if leaky == 0 and wait == 0 and waitt == 0 and cap * em < 1125899906842624 then
  if drained < now then
    level = 0
  elseif old == em and written <= now then
    level = (drained - now) * 1024 + ticks
    if level >= 1125899906842624 then level = nil end
  end
end
if not level then
  --<bucket slow>
end

--:slow
if not takes then
  --<bucket make>
end
tau, taut = takes(cap, em)
us, t, own, ownt, pace, lag, changed = 0, 0, 0, 0, em, 0, false
if at and drained >= now then
  if written > now then -- the clock was set back
    if after(written - now, 0, tau, taut) then -- by more than a burst takes: all moves to now
      drained, written, changed = drained - (written - now), now, true
      freed = drained + hold - now + 1
    else
      lag = written - now
    end
  end
  us, t, pace = drained - now - lag, ticks, old
  own, ownt = us, t
  if pace ~= em then
    --<bucket convert>
    local cut
    us, t, cut = convert(us, t, pace, em)
    if cut then
      t = t + 1
      if t == 1024 then us, t = us + 1, 0 end
    end
    if not after(us, t, tau, taut) then
      own, ownt, pace, changed = us, t, em, true
    end
  end
end

--:fit
-- How many events there are to the brim, and to the end of the wait.
if level then
  room = floor((cap * em - level) / em) - reserved
  if unit + reserved <= cap then k = fits(room, cost, unit, copies) end
else
  room = count(tau - us, taut - t, em) - reserved
  if leaky == 1 then
    turns = count(wait - us, waitt - t, em)
    if unit + reserved <= cap and turns >= 0 and room >= 0 then
      k = fits(room, cost, unit, copies)
      if k > 1 and cost > 0 then -- the last copy must also leave in time
        local last = floor(turns / unit) + 1
        if last < k then k = last end
      end
    end
  elseif unit + reserved <= cap then
    local free = room
    if wait > 0 or waitt > 0 then free = count(tau - us + wait, taut - t + waitt, em) - reserved end
    k = fits(free, cost, unit, copies)
  end
end

--:take
local n = k * cost
left = room - n
if level then
  if n > 0 then
    level = level + n * em
    reset = floor(level / 1024)
    resett = level - reset * 1024
    if hold > 0 then
      state, till = pack('<dI2ddBdd', now + reset, resett + 32768, em, now, 3, hold, kept), now + reset + 1 + hold
    else
      state, till = pack('<dI2ddB', now + reset, resett + 32768, em, now, 2), now + reset + 1
    end
  else
    reset, resett = 0, level
  end
  if k == 0 or short then
    if unit + reserved <= cap then
      latert = level - (cap - reserved - unit) * em
    elseif unit + reserved - held <= cap then
      later = freed
    end
  end
else
  if leaky == 1 then
    if turns < n then left = 0 elseif turns - n + 1 < left then left = turns - n + 1 end
  end
  if changed then state, till = pour(own, ownt, pace, now + lag, hold, kept) end
  if k > 0 then
    if leaky == 1 then
      delay, delayt = us, t
    else
      local one, onet = takes(unit + reserved, em)
      if after(us + one, t + onet, tau, taut) then delay, delayt = us + one - tau, t + onet - taut end
    end
    if n > 0 then
      local more, moret = takes(n, em)
      us, t = us + more, t + moret
      if t >= 1024 then us, t = us + 1, t - 1024 end
      state, till = pour(us, t, em, now + lag, hold, kept)
      own, ownt, pace = us, t, em
    end
  end
  reset, resett = own + lag, ownt
  if (k == 0 or short) and unit + reserved > cap and unit + reserved - held <= cap then
    later = freed
  elseif (k == 0 or short) and unit + reserved <= cap then
    -- It passes once the level is no higher than this.
    local limit, limitt = takes(unit + reserved, em)
    limit, limitt = tau - limit, taut - limitt
    if leaky == 0 then
      limit, limitt = limit + wait, limitt + waitt
    elseif after(limit, limitt, wait, waitt) then
      limit, limitt = wait, waitt
    end
    if pace ~= em then
      --<bucket convert>
      limit, limitt = convert(limit, limitt, em, pace)
    end
    later, latert = own + lag - limit, ownt - limitt
  end
end
if left < 0 then left = 0 end

--:follow
-- The buckets of the checks before are of the same kind, and this one has taken their place. At least
-- as many events are used here as in each of them once all are charged, or all.
if k > 0 then
  if not takes then
    --<bucket make>
  end
  --<bucket convert>
  for j = 1, #befores do
    local before = checks[befores[j]]
    local n, theirs = before[7], before[10]
    if n > 0 then
      if n > granted then n = granted end
      local old, more, moret, most = theirs[1], theirs[8], theirs[9], theirs[17]
      if most then
        more = floor(most / 1024)
        moret = most - more * 1024
      end
      local taken, takent = takes(n * before[5], old)
      more, moret = more + taken, moret + takent
      if moret >= 1024 then more, moret = more + 1, moret - 1024 end
      local cut
      more, moret, cut = convert(more, moret, old, em)
      if cut then
        moret = moret + 1
        if moret == 1024 then more, moret = more + 1, 0 end
      end
      tau, taut = takes(cap, em)
      if after(more, moret, tau, taut) then more, moret = tau, taut end
      lag = lag or 0
      if after(more, moret, reset - lag, resett) then
        state, till = pour(more, moret, em, now + lag, hold, kept)
        reset, resett = more + lag, moret
        left = count(tau - more, taut - moret, em) - reserved
        if leaky == 1 then
          turns = count(wait - more, waitt - moret, em)
          if turns < 0 then left = 0 elseif turns + 1 < left then left = turns + 1 end
        end
        if left < 0 then left = 0 end
      end
    end
  end
end

--:pair
-- Rare operations take the level in two numbers.
if level then
  --<bucket slow>
end

--:back
--<bucket pair>
local unknown = taken < 0
if unknown then taken, takent = now, 0 end
local more, moret = takes(n, pace) -- more than this law holds drains at its own pace
local half = floor(pace / 2)
if after(now, 0, taken + tau, takent + taut) or unknown and leaky == 1 then
  changed = false -- it does not count any more, or somebody may wait for it
elseif leaky == 1 and (not after(now + lag + own, ownt, taken, takent) or
    after(now + lag + own, ownt - half, taken + more, takent + moret)) then
  -- Others leave after it: its turn stays unused, or two would leave at once.
else
  own, ownt, changed = own - more, ownt - moret, true
  if ownt < 0 then own, ownt = own - 1, ownt + 1024 end
  if leaky == 1 and after(taken, takent, now + lag + own, ownt + half) then
    -- More than was taken: those before it keep their turns.
    own, ownt = taken - now - lag + floor(takent / 1024), takent % 1024
  end
  if own < 0 then own, ownt = 0, 0 end
end
if changed then state, till = pour(own, ownt, pace, now + lag, hold, kept) end

--:force
--<bucket pair>
local more, moret = takes(n, pace)
more, moret = own + more, ownt + moret
if moret >= 1024 then more, moret = more + 1, moret - 1024 end
local limit, limitt = takes(2 * cap, pace)
-- No law holds more than this, a debt of its capacity included. A post may fill all of it; see most in change.lua.
if settles == 4 or pace ~= em and limit >= 63244800000000 then limit, limitt = 63244800000000, 0 end
if after(more, moret, limit, limitt) then more, moret = limit, limitt end
if after(more, moret, own, ownt) then own, ownt = more, moret end
state, till = pour(own, ownt, pace, now + lag, hold, kept)
