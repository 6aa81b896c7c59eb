package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// hotEvery: one in so many lookups, by chance of the clock, leaves its slot to be
// tried first by the next. Traffic is mostly uneven, and where it is not the try
// costs little. A slot that was given to another key since does not match.
const hotEvery = 16

// spend decides into d what token buckets are mostly asked, or reports false.
func (s *Store) spend(d *tidegate.Decision, b *bound, k keyHash, cost int64) bool {
	sl := b.hot.Load()
	old, word, ok := sl.read(k)
	if !ok {
		return s.spendCold(d, b, k, cost)
	}
	if old.slow != uint64(b.bucket.Em) {
		return false
	}
	origin, now := s.origin.Load(), s.clock.now()
	owed, admitted, sure := b.bucket.Spend(origin+int64(old.fast), now, cost)
	if !sure || !reaches(origin, now) {
		return false
	}
	if !admitted {
		d.RetryAfter = algo.Duration(owed + cost*b.bucket.Em - b.bucket.Brim)
		b.tell(d, owed, now)
		return sl.word.Load() == word
	}
	if !sl.word.CompareAndSwap(word, word&genMask|uint64(now+owed-origin)) {
		if owed, ok = s.spendAgain(sl, b, word, origin, now, cost); !ok {
			return false
		}
	}
	d.OK, d.Granted = true, 1
	b.tell(d, owed, now)
	return true
}

// spendCold is spend for a key that is not the hot one. Its memory comes while
// the clock is read; nobody is refused by a clock that was read before the state.
func (s *Store) spendCold(d *tidegate.Decision, b *bound, k keyHash, cost int64) bool {
	b.table.touch(k)
	origin, now := s.origin.Load(), s.clock.now()
	sl, old, word := b.table.look(k)
	if sl == nil || old.slow != uint64(b.bucket.Em) {
		return false
	}
	if now%hotEvery == 0 {
		b.hot.Store(sl)
	}
	owed, ok, sure := b.bucket.Spend(origin+int64(old.fast), now, cost)
	if !sure || !ok || !reaches(origin, now) {
		return false
	}
	if !sl.word.CompareAndSwap(word, word&genMask|uint64(now+owed-origin)) {
		if owed, ok = s.spendAgain(sl, b, word, origin, now, cost); !ok {
			return false
		}
	}
	d.OK, d.Granted = true, 1
	b.tell(d, owed, now)
	return true
}

// tell fills in where the bucket stands.
func (b *bound) tell(d *tidegate.Decision, owed, now int64) {
	d.Limit, d.Receipt.At = b.limit, now
	d.Remaining, d.ResetAfter = b.bucket.Left(owed), algo.Duration(owed)
}

// spendAgain tries a charge again that others were quicker with, as long as the
// slot is the same key's under the same limit. Refusing is not for it: it may be
// that only now is too old.
func (s *Store) spendAgain(sl *slot, b *bound, word uint64, origin, now, cost int64) (owed int64, ok bool) {
	for range 8 {
		was := word
		if word = sl.word.Load(); (word^was)&(busyBit|genMask) != 0 {
			return 0, false
		}
		owed, admitted, sure := b.bucket.Spend(origin+int64(word&fastMask), now, cost)
		if !sure || !admitted {
			return 0, false
		}
		if sl.word.CompareAndSwap(word, word&genMask|uint64(now+owed-origin)) {
			return owed, true
		}
	}
	return 0, false
}
