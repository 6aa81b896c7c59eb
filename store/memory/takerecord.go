package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// maxReclaims is how often room for one record is made before giving up: what
// was freed may have gone to others. Then records are squeezed.
const maxReclaims = 3

// takeOneRecord decides a single check whose state is in a record, which is
// owned for that long. The clock is read when it is, so that stamps come in
// order and the receipt says what they are.
func (s *Store) takeOneRecord(d *tidegate.Decision, b *bound, k keyHash, a algo.Ask) {
	reclaims := 0
	for turn := 0; ; turn++ {
		b = s.current(b)
		sl := b.table.find(k)
		if sl == nil {
			if s.insertRecord(d, b, k, a) {
				return
			}
			continue
		}
		old, word, ok := sl.lock(k)
		if !ok {
			spin(turn)
			continue
		}
		b.budget.touch(handle(old.slow)) // it comes while the clock is read
		now, failed := s.clock.owned()
		if failed != nil {
			sl.release(word, k, old, old)
			panic(failed)
		}
		at := now
		if b.kind == leases && a.Cost > 0 {
			r := b.record(old)
			at = s.leaseName(now, b.lease.Fit(&r, now, a), func(from, to int64) bool { return b.lease.Named(&r, from, to) })
		}
		next, v, ok := s.takeRecord(b, b.table.segment(k), old, now, at, a, reclaims > maxReclaims)
		sl.release(word, k, old, next)
		switch {
		case ok:
			answer(d, b.limit, v, at)
			return
		case reclaims > maxReclaims:
			s.full(d, b, now)
			return
		case s.roomForRecord(b, old, a, now):
			reclaims++
		default:
			reclaims = maxReclaims + 1
		}
	}
}

// roomForRecord makes room for a record larger than what c has, or reports false
// when that was in vain: where limits spare keys that hold somebody back, and
// there are no others.
func (s *Store) roomForRecord(b *bound, c cell, a algo.Ask, now int64) bool {
	words := 0
	if h := handle(c.slow); h.class() == paged {
		words = 2 * len(classWords) * algo.PageWords // enough to go on with
	}
	if b.kind == leases {
		words = max(words, int(2*min(a.Copies, b.limit.Events)*a.Cost))
	}
	return s.reclaim(b.table, 2+words/algo.PageWords, now, true)
}

// insertRecord gives a key that is not known a slot, or answers at once when
// there is nothing to remember of it. It reports false when it is to be looked
// up again.
func (s *Store) insertRecord(d *tidegate.Decision, b *bound, k keyHash, a algo.Ask) bool {
	now := s.clock.now()
	if a.Cost > 0 && a.Cost <= b.fits {
		_, ok := s.insert(b, k, cell{}, now)
		if !ok {
			s.full(d, b, now)
		}
		return !ok
	}
	_, v, _ := s.takeRecord(b, nil, cell{}, now, now, a, false) // a peek, or never fits
	answer(d, b.limit, v, now)
	return !b.table.holds(k)
}
