package gateway

import (
	"sync"
	"time"
)

// stall is a deadline that moves on as long as something moves: a client that
// stops in the middle of a body must not hold a connection, a slot and an upstream
// for ever. The zero value has none.
type stall struct {
	after time.Duration
	set   func(time.Time) error // the deadline, of reading or of writing

	mu     sync.Mutex
	last   time.Time // under mu: when it was set
	ceased bool      // under mu
}

// moving is called before each part. The deadline is a timer, and not free: it is
// set again only when a good part of it has passed.
func (s *stall) moving() {
	if s.after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.ceased && now.Sub(s.last) > s.after/4 {
		s.last = now
		_ = s.set(now.Add(s.after)) // or it has none
	}
}

// cease takes the deadline back: from now on silence is all right.
func (s *stall) cease() {
	if s.after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.IsZero() {
		_ = s.set(time.Time{})
	}
	s.ceased = true
}
