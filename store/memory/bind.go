package memory

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate"
)

// maxBounds is how many limits of one identity are kept ready at once; a caller
// that makes a new Limit per request gets slower, not larger.
const maxBounds = 64

// bind finds the limit's table, making it at the first call.
func (s *Store) bind(l *tidegate.Limit) (*bound, error) {
	if b := s.seat(l).Load(); b != nil && b.limit == l {
		return b, nil
	}
	b, err := s.bindSlow(l)
	if err == nil {
		s.recall(b)
	}
	return b, err
}

// seat is where the limit is found again at once.
func (s *Store) seat(l *tidegate.Limit) *atomic.Pointer[bound] {
	return &s.recent[uintptr(unsafe.Pointer(l))/unsafe.Sizeof(*l)%uintptr(len(s.recent))]
}

func (s *Store) recall(b *bound) { s.seat(b.limit).Store(b) }

func (s *Store) bindSlow(l *tidegate.Limit) (*bound, error) {
	if l == nil || l.Identity() == "" {
		return nil, fmt.Errorf("memory: a check has no limit made by tidegate.NewLimit")
	}
	if l.Algorithm == tidegate.Deny {
		return nil, fmt.Errorf("memory: %s is an access rule, which no store counts; put the request to a tidegate.Gate", l)
	}
	s.mu.Lock()
	b, added := s.bindLocked(l)
	s.mu.Unlock()
	if added { // what it takes must come from others, once it is over the bound
		s.reclaim(b.table, 1, s.clock.now(), false)
	}
	return b, nil
}

func (s *Store) bindLocked(l *tidegate.Limit) (b *bound, added bool) {
	if b := s.bounds[l]; b != nil {
		return b, false
	}
	t := s.byID[l.Identity()]
	if added = t == nil; added {
		t = newTable(l.Identity(), kinds[l.Algorithm], s.hash.sum(l.Identity(), 0).tag, &s.budget)
		s.budget.giveBack(t, -tableBytes)
		s.byID[t.id] = t
		t.place = len(s.tables)
		s.tables = append(s.tables, t)
	}
	if len(t.limits) == maxBounds {
		s.unbindLocked(t)
	}
	b = newBound(l, t, &s.budget)
	t.limits = append(t.limits, l)
	s.bounds[l] = b
	return b, added
}

// unbindLocked forgets the limits bound to t; those that are asked about are bound
// again.
func (s *Store) unbindLocked(t *table) {
	for _, l := range t.limits {
		delete(s.bounds, l)
	}
	t.limits = nil
}

// current returns b, or the limit bound again if its table was dropped.
func (s *Store) current(b *bound) *bound {
	for b.table.dropped.Load() {
		floor := b.floor
		b, _ = s.bindSlow(b.limit) // it was bound before
		s.recall(b)
		b = b.above(floor)
	}
	return b
}

// dropIfEmpty forgets a table without keys: of a limit that is not used any more,
// or will be bound again.
func (s *Store) dropIfEmpty(t *table) bool {
	if t.keys.Load() > 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := t.dir.Load().segs[0].Load()
	if t.dropped.Load() || !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	if g.depth > 0 || g.slots.Load() > 0 {
		return false
	}
	t.dropped.Store(true)
	s.unbindLocked(t)
	delete(s.byID, t.id)
	last := len(s.tables) - 1
	s.tables[t.place] = s.tables[last]
	s.tables[t.place].place = t.place
	s.tables[last] = nil
	s.tables = s.tables[:last]
	if s.largest == t {
		s.largest = nil
	}
	s.gone.add(t)
	s.budget.giveBack(t, tableBytes)
	return true
}
