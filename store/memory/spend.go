package memory

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// shortWay is how the most common checks of a limit are decided: one request about a key
// that is known, by a state that was written under this limit and has room.
type shortWay uint8

const (
	longWay shortWay = iota // there is no short one
	shortBucket
	shortCounter
	shortSliding
	shortRuns
)

var shortWays = map[tidegate.Algorithm]shortWay{
	tidegate.TokenBucket:   shortBucket,
	tidegate.FixedWindow:   shortCounter,
	tidegate.Quota:         shortCounter,
	tidegate.SlidingWindow: shortSliding,
	tidegate.SlidingLog:    shortRuns,
	tidegate.SubWindows:    shortRuns,
}

// hotEvery is after how many lookups, on average, the slot found is remembered as the
// one to try first. Traffic is mostly uneven, and where it is not the try costs little.
// A slot that another key has taken since does not match.
const hotEvery = 16

// contended is how often the short way tries to write a slot that others write, too.
const contended = 8

// spend decides into d by the short way, or reports false: then d is to be written anew. It is
// written before the slot is, as that waits for every write before it, and a caller's
// copy of d then has nothing to wait for.
func (s *Store) spend(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	switch lim.short {
	case shortBucket:
		return s.spendBucket(d, lim, k, cost)
	case shortCounter:
		return s.spendCounter(d, lim, k, cost)
	case shortSliding:
		return s.spendSliding(d, lim, k, cost)
	case shortRuns:
		return s.spendRuns(d, lim, k, cost)
	}
	return false
}

// look reads the clock and then the state of k; the slot is nil if that cannot be read now. Who
// decides by it refuses nobody, as others may have charged k at a later time than now.
func (s *Store) look(lim *compiledLimit, k keyHash) (sl *slot, old cell, word uint64, now int64) {
	hot := lim.hot.Load()
	tag := hot.tag.Load()
	if sl = hot; tag == k.tag {
		now = s.clock.now()
		var ok bool
		if old, word, ok = sl.read(k); !ok {
			sl = nil
		}
		return sl, old, word, now
	}
	lim.table.touch(k) // its memory is fetched while the clock is read
	now = s.clock.now()
	if sl, old, word = lim.table.findAndRead(k); sl != nil && (now%hotEvery == 0 || tag == 0) {
		lim.hot.Store(sl)
	}
	return sl, old, word, now
}

// reread is the word of a slot that others write, if it still holds the same key, window and limit.
func (s *slot) reread(was uint64) (word uint64, ok bool) {
	word = s.word.Load()
	return word, (word^was)&(busyBit|genMask) == 0
}

// spendBucket reads the state before the clock, so that it can refuse.
func (s *Store) spendBucket(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
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
	// Others may have charged it while the clock was read: a look costs less than a swap that fails.
	if sl.word.Load() == word && sl.word.CompareAndSwap(word, word&genMask|uint64(now+level-origin)) {
		return true
	}
	return s.spendAgain(d, sl, lim, word, origin, now, cost)
}

// spendCold is spendBucket for a key that is not the hot one. It refuses nobody.
func (s *Store) spendCold(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	origin := s.origin.Load()
	sl, old, word, now := s.look(lim, k)
	if sl == nil || old.slow != uint64(lim.bucket.Em) {
		return false
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

// spendAgain tries again to charge a bucket that others charged first. It refuses nobody.
func (s *Store) spendAgain(d *tidegate.Decision, sl *slot, lim *compiledLimit, word uint64, origin, now, cost int64) bool {
	for range contended {
		var ok bool
		if word, ok = sl.reread(word); !ok {
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

// report fills in the limit, and what is left of a bucket.
func (lim *compiledLimit) report(d *tidegate.Decision, level, now int64) {
	d.Limit, d.Receipt.At = lim.limit, now
	d.Remaining, d.ResetAfter = lim.bucket.Left(level), algo.Duration(level)
}

func (s *Store) spendCounter(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	sl, old, word, now := s.look(lim, k)
	if sl == nil {
		return false
	}
	wall := s.clock.wall(now)
	span := lim.spans.Load()
	if span == nil || old.slow != uint64(span.Start) || !span.Holds(wall/algo.Micro) {
		return false
	}
	d.OK, d.Granted = true, 1
	d.Limit, d.Receipt.At = lim.limit, now
	d.ResetAfter = algo.Duration(span.End*algo.Micro - wall)
	for range contended {
		old.fast = word & fastMask
		left, ok := lim.counter.Spend(int64(old.fast), cost)
		if !ok {
			return s.refuse(d, lim, sl, old, word, now, cost)
		}
		d.Remaining = left
		if sl.word.CompareAndSwap(word, word+uint64(cost)) {
			return true
		}
		if word, ok = sl.reread(word); !ok {
			return false
		}
	}
	return false
}

func (s *Store) spendSliding(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	sl, old, word, now := s.look(lim, k)
	if sl == nil {
		return false
	}
	d.OK, d.Granted = true, 1
	d.Limit, d.Receipt.At = lim.limit, now
	for range contended {
		old.fast = word & fastMask
		left, reset, ok := lim.sliding.Spend(sliding(old), now, cost)
		if !ok {
			return s.refuse(d, lim, sl, old, word, now, cost)
		}
		d.Remaining, d.ResetAfter = left, algo.Duration(reset)
		if sl.word.CompareAndSwap(word, word+uint64(cost)) {
			return true
		}
		if word, ok = sl.reread(word); !ok {
			return false
		}
	}
	return false
}

// refuse decides what has no room at the instant now, which was read before the state. It
// reports false if it may have room after all.
func (s *Store) refuse(d *tidegate.Decision, lim *compiledLimit, sl *slot, old cell, word uint64, now, cost int64) bool {
	next, v := s.take(lim, old, now, ask(cost, 0, 1))
	if next != old || !surelyRefused(v) {
		return false
	}
	answer(d, lim.limit, v, now)
	return sl.word.Load() == word
}

// staleAt is the retry-after below which a refusal may only be due to a clock that was
// read a moment before somebody else's charge: then the clock is read again, once.
const staleAt = time.Millisecond

// surelyRefused reports whether v refuses for longer than a clock can be late.
func surelyRefused(v algo.Verdict) bool {
	return v.Granted == 0 && !v.Never() && algo.Duration(v.Retry()) >= staleAt
}

// spendRuns owns the slot while it reads and writes the record, as everybody must. The clock
// is read before, so that nobody waits for that.
func (s *Store) spendRuns(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	sl := lim.hot.Load()
	var now int64
	if sl.tag.Load() == k.tag {
		now = s.clock.now()
	} else if sl, _, _, now = s.look(lim, k); sl == nil {
		return false
	}
	old, word, ok := sl.lock(k)
	if !ok {
		return false
	}
	var r algo.Record
	lim.loadRecord(&r, old)
	left, reset, at, ok := lim.runs.Spend(&r, now, cost)
	if ok {
		d.OK, d.Granted = true, 1
		d.Limit, d.Receipt.At = lim.limit, at
		d.Remaining, d.ResetAfter = left, algo.Duration(reset)
	} else if !lim.runs.Behind(&r, now) {
		var v algo.Verdict
		if v, ok = lim.runs.Take(&r, now, ask(cost, 0, 1)); ok {
			ok = v.Granted > 0 || surelyRefused(v)
			answer(d, lim.limit, v, now)
		}
	}
	sl.word.Store(word)
	return ok
}
