package memory

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// shortWay is the fast path of a limit, for the most common requests: the key is known, and
// its state was written under this limit and has room.
type shortWay uint8

const (
	longWay shortWay = iota // there is no fast path
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

// look reads the clock and then the state of k; the slot is nil if the state cannot be read now.
// Others may have charged k at a later time than now, so a refusal is only certain if its wait is
// longer than a clock can be late. It does not touch the slot before it has read the clock: on a
// contended key, each touch waits for the cache line.
func (s *Store) look(lim *compiledLimit, k keyHash) (sl *slot, old cell, word uint64, now int64) {
	if lim.hotTag.Load() != k.tag {
		return s.search(lim, k)
	}
	sl, now = lim.hot.Load(), s.clock.now()
	for range contended { // somebody may own it for a moment
		var ok bool
		if old, word, ok = sl.read(k); ok {
			return sl, old, word, now
		}
		if sl.tag.Load() != k.tag { // it was moved
			lim.hotTag.CompareAndSwap(k.tag, 0)
			break
		}
	}
	return nil, cell{}, 0, now
}

// search is look for a key that is not the hot one. Its memory is fetched while the clock is read.
func (s *Store) search(lim *compiledLimit, k keyHash) (sl *slot, old cell, word uint64, now int64) {
	lim.table.touch(k)
	now = s.clock.now()
	sl, old, word = lim.table.findAndRead(k)
	if sl != nil && (now%hotEvery == 0 || lim.hotTag.Load() == 0) {
		lim.warm(sl, k)
	}
	return sl, old, word, now
}

// warm notes that k was found in sl.
func (lim *compiledLimit) warm(sl *slot, k keyHash) {
	lim.hot.Store(sl)
	lim.hotTag.Store(k.tag)
}

// reread returns the present word of a slot, if it still holds the same key, window and limit as was.
func (s *slot) reread(was uint64) (word uint64, ok bool) {
	word = s.word.Load()
	return word, (word^was)&(busyBit|genMask) == 0
}

// spend decides into d by the fast path, or reports false: what it has written to d is then void. It
// writes d before the slot, because the write to the slot waits for all earlier ones, and the
// caller can then copy d without waiting.
func (s *Store) spend(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	if lim.short == longWay {
		return false
	}
	origin := s.origin.Load()
	var (
		sl   *slot
		old  cell
		word uint64
		now  int64
		ok   bool
	)
	if lim.hotTag.Load() == k.tag { // as look does, without a call
		sl, now = lim.hot.Load(), s.clock.now()
		old, word, ok = sl.read(k)
	}
	if !ok {
		if sl, old, word, now = s.look(lim, k); sl == nil {
			return false
		}
	}
	switch lim.short {
	case shortCounter:
		return s.spendCounter(d, lim, sl, old, word, now, cost)
	case shortSliding:
		return s.spendSliding(d, lim, sl, old, word, now, cost)
	case shortRuns:
		return s.spendRuns(d, lim, k, sl, old, word, now, cost)
	}
	if old.slow != uint64(lim.bucket.Em) || !originCovers(origin, now) {
		return false
	}
	return s.spendBucket(d, lim, sl, word, origin, now, cost)
}

// hotBucket reports whether spendHot can be asked about k.
func (lim *compiledLimit) hotBucket(k keyHash) bool {
	return lim.short == shortBucket && lim.hotTag.Load() == k.tag
}

// spendHot is spend for the hot key of a bucket, in a straight line. It reports false also where
// spend may succeed.
func (s *Store) spendHot(d *tidegate.Decision, lim *compiledLimit, k keyHash, cost int64) bool {
	origin, sl, now := s.origin.Load(), lim.hot.Load(), s.clock.now()
	word := sl.word.Load()
	if word&busyBit != 0 || sl.tag.Load() != k.tag || sl.meta.Load() != k.extra|uint64(lim.bucket.Em) || !originCovers(origin, now) {
		return false
	}
	if level, left, admitted, _ := lim.bucket.Spend(origin+int64(word&fastMask), now, cost); admitted {
		d.OK, d.Granted = true, 1
		lim.report(d, level, left, now)
		if sl.word.CompareAndSwap(word, word&genMask|uint64(now+level-origin)) {
			return true
		}
		var ok bool
		if word, ok = sl.reread(word); !ok {
			return false
		}
	}
	return s.spendBucket(d, lim, sl, word, origin, now, cost)
}

// spendBucket charges a bucket whose word was read at the instant now. spendHot may have written a
// refusal into d before it saw that somebody made room.
func (s *Store) spendBucket(d *tidegate.Decision, lim *compiledLimit, sl *slot, word uint64, origin, now, cost int64) bool {
	d.OK, d.Granted, d.RetryAfter = true, 1, 0
	for range contended {
		drained := origin + int64(word&fastMask)
		level, left, admitted, sure := lim.bucket.Spend(drained, now, cost)
		if !sure {
			return false
		}
		if !admitted {
			return s.refuseBucket(d, lim, drained, level, left, now, cost) && sl.word.Load() == word
		}
		lim.report(d, level, left, now)
		if sl.word.CompareAndSwap(word, word&genMask|uint64(now+level-origin)) {
			return true
		}
		var ok bool
		if word, ok = sl.reread(word); !ok {
			return false
		}
	}
	return false
}

// refuseBucket refuses what has no room at the instant now. If that may be due to a late clock, it
// reads the clock again, and reports false if there is room by then.
func (s *Store) refuseBucket(d *tidegate.Decision, lim *compiledLimit, drained, level, left, now, cost int64) bool {
	missing := cost*lim.bucket.Em - lim.bucket.Brim // at level 0
	if level+missing < staleTicks {
		var admitted, sure bool
		now = s.clock.now()
		if level, left, admitted, sure = lim.bucket.Spend(drained, now, cost); admitted || !sure {
			return false
		}
	}
	d.OK, d.Granted = false, 0
	d.RetryAfter = algo.Duration(level + missing)
	lim.report(d, level, left, now)
	return true
}

// report fills in the limit, and what is left of a bucket.
func (lim *compiledLimit) report(d *tidegate.Decision, level, left, now int64) {
	d.Limit, d.Receipt.At = lim.limit, now
	d.Remaining, d.ResetAfter = left, algo.Duration(level)
}

func (s *Store) spendCounter(d *tidegate.Decision, lim *compiledLimit, sl *slot, old cell, word uint64, now, cost int64) bool {
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

func (s *Store) spendSliding(d *tidegate.Decision, lim *compiledLimit, sl *slot, old cell, word uint64, now, cost int64) bool {
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

// refuse decides what has no room at the instant now, which was read before the state. If that is not
// sure, it reads the clock again. It reports false if it may have room after all.
func (s *Store) refuse(d *tidegate.Decision, lim *compiledLimit, sl *slot, old cell, word uint64, now, cost int64) bool {
	next, v := s.take(lim, old, now, ask(cost, 0, 1))
	if next == old && !surelyRefused(v) {
		now = s.clock.now()
		next, v = s.take(lim, old, now, ask(cost, 0, 1))
	}
	if next != old || v.Granted > 0 || v.Never() {
		return false
	}
	answer(d, lim.limit, v, now)
	return sl.word.Load() == word
}

// staleAt is the RetryAfter below which a refusal may be wrong because the clock was read before
// another goroutine's charge: the clock is then read again. A goroutine can lose its processor
// between the clock and the state, for milliseconds on a busy machine.
const (
	staleAt    = time.Second
	staleTicks = 1_000_000 * algo.Micro
)

// surelyRefused reports whether v refuses, and for longer than a clock can be late.
func surelyRefused(v algo.Verdict) bool {
	return v.Granted == 0 && !v.Never() && algo.Duration(v.Retry()) >= staleAt
}

// spendRuns charges an entry by compare-and-swap, as the others charge a count. It owns the slot
// while it looks at a record.
func (s *Store) spendRuns(d *tidegate.Decision, lim *compiledLimit, k keyHash, sl *slot, old cell, word uint64, now, cost int64) bool {
	if old.isEntry() && spendEntry(d, lim, sl, old, word, now, cost) {
		return true
	}
	old, ok := sl.claim(k, old, word)
	for i := 0; !ok; i++ {
		if i == contended || sl.tag.Load() != k.tag {
			return false
		}
		old, word, ok = sl.lock(k)
	}
	if h := old.handle(); h != 0 {
		var r algo.Record
		lim.budget.loadRecord(&r, h)
		if left, reset, at, spending := lim.runs.Spend(&r, now, cost, true); spending == algo.Spent {
			lim.reportRuns(d, left, reset, at)
			sl.word.Store(word)
			return true
		}
	}
	next, ok := s.spendOwned(d, lim, k, old, now, cost)
	sl.release(word, k, old, next)
	return ok
}

// spendEntry charges an entry that is kept in the slot, and so needs nobody to own it.
func spendEntry(d *tidegate.Decision, lim *compiledLimit, sl *slot, old cell, word uint64, now, cost int64) bool {
	for range contended {
		left, reset, at, ok := lim.runs.SpendEntry(entryOf(old), now, cost)
		if !ok {
			return false
		}
		lim.reportRuns(d, left, reset, at)
		if sl.word.CompareAndSwap(word, word+uint64(cost)) {
			return true
		}
		if word, ok = sl.reread(word); !ok {
			return false
		}
		old.fast = word & fastMask
	}
	return false
}

// spendOwned charges an entry, or a record that has to grow. The caller owns the slot and leaves next
// in it, also if ok is false and the long way has to decide.
func (s *Store) spendOwned(d *tidegate.Decision, lim *compiledLimit, k keyHash, old cell, now, cost int64) (next cell, ok bool) {
	var room entryRoom
	r := lim.record(old, &room)
	left, reset, at, spending := lim.runs.Spend(&r, now, cost, true)
	next = old
	if spending == algo.TooFull {
		if next, ok = lim.growRecord(lim.table.segment(k), old, now, algo.Ask{}, false); ok {
			lim.budget.loadRecord(&r, next.handle())
			left, reset, at, spending = lim.runs.Spend(&r, now, cost, true)
		}
	}
	if spending != algo.Spent {
		return s.takeOwned(d, lim, k, next, &r, now, cost)
	}
	lim.reportRuns(d, left, reset, at)
	return lim.keep(next, &r), true
}

// reportRuns fills in what a log or sub-windows have admitted.
func (lim *compiledLimit) reportRuns(d *tidegate.Decision, left, reset, at int64) {
	d.OK, d.Granted = true, 1
	d.Limit, d.Receipt.At = lim.limit, at
	d.Remaining, d.ResetAfter = left, algo.Duration(reset)
}

// takeOwned asks the law about r, the record of k, which Spend could not decide. The caller owns the slot
// and leaves next in it, also if ok is false and the long way has to decide.
func (s *Store) takeOwned(d *tidegate.Decision, lim *compiledLimit, k keyHash, old cell, r *algo.Record, now, cost int64) (next cell, ok bool) {
	if lim.table.dropped.Load() || lim.runs.Behind(r, now) {
		return old, false
	}
	g := lim.table.segment(k)
	next, v, ok := s.takeRecord(lim, g, old, now, now, ask(cost, 0, 1), false)
	if ok && v.Granted == 0 && !surelyRefused(v) {
		var failed any
		if now, failed = s.clock.tryNow(); failed != nil {
			return next, false // the long way reads it once more
		}
		next, v, ok = s.takeRecord(lim, g, next, now, now, ask(cost, 0, 1), false)
	}
	answer(d, lim.limit, v, now)
	return next, ok && !v.Never()
}
