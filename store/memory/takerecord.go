package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// maxReclaims is how often memory is reclaimed for one record, since others may take
// what was freed. After that, records are squeezed.
const maxReclaims = 3

// takeOneRecord decides a single check whose state is in a record. The clock is read
// while the slot is owned, so that stamps are in order and are what the receipt says.
func (s *Store) takeOneRecord(d *tidegate.Decision, lim *compiledLimit, k keyHash, a algo.Ask) {
	reclaims := 0
	for attempt := 0; ; attempt++ {
		lim = s.current(lim)
		sl := lim.table.find(k)
		if sl == nil {
			if s.insertRecord(d, lim, k, a) {
				return
			}
			continue
		}
		old, word, ok := sl.lock(k)
		if !ok {
			spin(attempt)
			continue
		}
		lim.budget.touch(old.handle()) // it is fetched while the clock is read
		now, failed := s.clock.tryNow()
		if failed != nil {
			sl.release(word, k, old, old)
			panic(failed)
		}
		at := now
		if lim.kind == leases && a.Cost > 0 {
			var room entryRoom
			r := lim.record(old, &room)
			at = s.leaseName(now, lim.lease.Fit(&r, now, a), func(from, to int64) bool { return lim.lease.HasName(&r, from, to) })
		}
		next, v, ok := s.takeRecord(lim, lim.table.segment(k), old, now, at, a, reclaims > maxReclaims)
		sl.release(word, k, old, next)
		switch {
		case ok:
			answer(d, lim.limit, v, at)
			if lim.kind == leases {
				d.Receipt.Instance = s.instance
			}
			return
		case reclaims > maxReclaims:
			s.full(d, lim, now)
			return
		case s.roomForRecord(lim, old, a, now):
			reclaims++
		default:
			reclaims = maxReclaims + 1
		}
	}
}

// roomForRecord reclaims memory for a record larger than that of c. It reports false
// when there is none, because limits keep their exhausted keys and there are no others.
func (s *Store) roomForRecord(lim *compiledLimit, c cell, a algo.Ask, now int64) bool {
	words := 0
	if c.handle().class() == paged {
		words = 2 * len(classWords) * algo.PageWords // enough for a while
	}
	if lim.kind == leases {
		words = max(words, int(2*min(a.Copies, lim.limit.Events)*a.Cost))
	}
	return s.reclaim(lim.table, 2+words/algo.PageWords, now, true)
}

// insertRecord decides for a key that is not known, as takeFirst does. A key of leases only gets a
// slot. It reports false when the key is to be looked up again.
func (s *Store) insertRecord(d *tidegate.Decision, lim *compiledLimit, k keyHash, a algo.Ask) bool {
	now := s.clock.now()
	if lim.kind == leases && a.Cost > 0 && a.Cost <= lim.fits {
		_, ok := s.insert(lim, k, cell{}, now)
		if !ok {
			s.full(d, lim, now)
		}
		return !ok
	}
	next, v, _ := s.takeRecord(lim, nil, cell{}, now, now, a, false) // one entry at most
	answer(d, lim.limit, v, now)
	if next == (cell{}) { // a peek, or never fits
		return !lim.table.holds(k)
	}
	inserted, ok := s.insert(lim, k, next, now)
	if !ok {
		s.full(d, lim, now)
	}
	return inserted || !ok
}
