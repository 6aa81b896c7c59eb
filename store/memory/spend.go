package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// hotEvery is after how many lookups, on average, the slot found is remembered as the
// one to try first. Traffic is mostly uneven, and where it is not the try costs little.
// A slot that another key has taken since does not match.
const hotEvery = 16

// spend decides into d the most common case, one token bucket, or reports false: then d is
// to be written anew. It is written before the slot is, as that waits for every write before
// it, and a caller's copy of d then has nothing to wait for.
func (s *Store) spend(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	sl := lim.hot.Load()
	old, word, ok := sl.read(k)
	if !ok {
		return s.spendCold(d, lim, k, cost)
	}
	if old.slow != uint64(lim.bucket.Em) {
		return false
	}
	origin, now := s.origin.Load(), s.clock.now()
	level, admitted, sure := lim.bucket.Spend(origin+int64(old.fast), now, cost)
	if !sure || !inReach(origin, now) {
		return false
	}
	if !admitted {
		d.RetryAfter = algo.Duration(level + cost*lim.bucket.Em - lim.bucket.Brim)
		lim.report(d, level, now)
		return sl.word.Load() == word
	}
	d.OK, d.Granted = true, 1
	lim.report(d, level, now)
	if sl.word.CompareAndSwap(word, word&genMask|uint64(now+level-origin)) {
		return true
	}
	return s.spendAgain(d, sl, lim, word, origin, now, cost)
}

// spendCold is spend for a key that is not the hot one. Its memory is fetched while the
// clock is read. It refuses nobody, because the clock was read before the state.
func (s *Store) spendCold(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	lim.table.touch(k)
	origin, now := s.origin.Load(), s.clock.now()
	sl, old, word := lim.table.findAndRead(k)
	if sl == nil || old.slow != uint64(lim.bucket.Em) {
		return false
	}
	if now%hotEvery == 0 {
		lim.hot.Store(sl)
	}
	level, ok, sure := lim.bucket.Spend(origin+int64(old.fast), now, cost)
	if !sure || !ok || !inReach(origin, now) {
		return false
	}
	d.OK, d.Granted = true, 1
	lim.report(d, level, now)
	if sl.word.CompareAndSwap(word, word&genMask|uint64(now+level-origin)) {
		return true
	}
	return s.spendAgain(d, sl, lim, word, origin, now, cost)
}

// report fills in the limit, and what is left of it.
func (lim *compiledLimit) report(d *tidegate.Decision, level, now int64) {
	d.Limit, d.Receipt.At = lim.limit, now
	d.Remaining, d.ResetAfter = lim.bucket.Left(level), algo.Duration(level)
}

// spendAgain tries again to charge a slot that others wrote first, as long as it holds
// the same key under the same limit. It refuses nobody, because now may be too old.
func (s *Store) spendAgain(d *tidegate.Decision, sl *slot, lim *compiledLimit, word uint64, origin, now, cost int64) bool {
	for range 8 {
		was := word
		if word = sl.word.Load(); (word^was)&(busyBit|genMask) != 0 {
			return false
		}
		level, admitted, sure := lim.bucket.Spend(origin+int64(word&fastMask), now, cost)
		if !sure || !admitted {
			return false
		}
		if sl.word.CompareAndSwap(word, word&genMask|uint64(now+level-origin)) {
			lim.report(d, level, now)
			return true
		}
	}
	return false
}
