package memory

import (
	"fmt"
	"unsafe"

	"tidegate.dev/tidegate"
)

// maxBounds is how many limits are kept ready at once; a caller that makes a
// new Limit per request gets slower, not larger.
const maxBounds = 1 << 16

// bind finds the limit's table, making it at the first call.
func (s *Store) bind(l *tidegate.Limit) (*bound, error) {
	at := &s.recent[uintptr(unsafe.Pointer(l))/unsafe.Sizeof(*l)%uintptr(len(s.recent))]
	if b := at.Load(); b != nil && b.limit == l {
		return b, nil
	}
	b, err := s.bindSlow(l)
	if err == nil {
		at.Store(b)
	}
	return b, err
}

func (s *Store) bindSlow(l *tidegate.Limit) (*bound, error) {
	if l == nil || l.Identity() == "" {
		return nil, fmt.Errorf("memory: a check has no limit made by tidegate.NewLimit")
	}
	if l.Algorithm == tidegate.Deny {
		return nil, fmt.Errorf("memory: %s is an access rule, which no store counts; put the request to a tidegate.Gate", l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bounds[l]; b != nil {
		return b, nil
	}
	b := newBound(l, s.tableLocked(l.Identity(), kinds[l.Algorithm]))
	if len(s.bounds) >= maxBounds {
		clear(s.bounds)
	}
	s.bounds[l] = b
	return b, nil
}

func (s *Store) tableLocked(id string, k kind) *table {
	t := s.byID[id]
	if t == nil {
		t = newTable(id, k, s.hash.sum(id, 0).tag, &s.budget)
		s.byID[id] = t
		all := append([]*table(nil), *s.tables.Load()...)
		all = append(all, t)
		s.tables.Store(&all)
	}
	return t
}
