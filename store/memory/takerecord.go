package memory

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// maxEvictions is how often room for one record is made before giving up: what
// was freed may have gone to others.
const maxEvictions = 3

// takeOneRecord decides a single check whose state is in the arena, which is
// owned for that long. The clock is read when it is, so that stamps come in
// order and the receipt says what they are.
func (s *Store) takeOneRecord(b *bound, k keyHash, a algo.Ask) tidegate.Decision {
	if b.kind == leases {
		a.Copies = min(a.Copies, b.limit.Events) // more cannot be granted
	}
	evictions := 0
	for turn := 0; ; turn++ {
		sl := b.table.find(k)
		if sl == nil {
			if d, ok := s.insertRecord(b, k, a); ok {
				return d
			}
			continue
		}
		old, word, ok := sl.lock(k)
		if !ok {
			pause(turn)
			continue
		}
		now := s.clock.now()
		at := now
		if b.kind == leases && a.Cost > 0 {
			at = s.leaseName(now, int(a.Copies))
		}
		next, v, ok := s.takeRecord(b, old, now, at, a)
		sl.release(word, k, old, next)
		if ok {
			return decision(b.limit, &v, at)
		}
		if evictions == maxEvictions || !s.evictRecords(b, k, now) {
			return s.full(b, now)
		}
		evictions++
	}
}

// insertRecord gives a key that is not known a slot, or answers at once when
// there is nothing to remember of it. It reports false when it is to be looked
// up again.
func (s *Store) insertRecord(b *bound, k keyHash, a algo.Ask) (tidegate.Decision, bool) {
	now := s.clock.now()
	if a.Cost > 0 && a.Cost <= b.limit.Capacity() {
		_, ok := s.insert(b, k, cell{}, now)
		if !ok {
			return s.full(b, now), true
		}
		return tidegate.Decision{}, false
	}
	_, v, _ := s.takeRecord(b, cell{}, now, now, a) // a peek, or never fits
	return decision(b.limit, &v, now), !b.table.holds(k)
}
