package gateway

import (
	"sync"
	"time"
)

// stall ends a stream of HTTP/2 whose client lets us wait for too long: the connection of
// the stream moves on with others, so only whoever waits can tell. It watches one direction.
// The zero value watches nothing, as over HTTP/1, where the connection does it.
type stall struct {
	expire func() // ends the stream; is not called after close

	mu    sync.Mutex
	limit time.Duration // under mu: of one wait; 0 means any
	since time.Time     // under mu: when the wait under way began; zero means there is none
	timer *time.Timer   // under mu: nil means that nobody has waited yet
	set   bool          // under mu: the timer is running
	over  bool          // under mu
}

// begin is called before something that waits for the client. The timer is left running
// between waits, and finds out when it fires.
func (s *stall) begin() {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.startLocked(s.limit)
}

func (s *stall) startLocked(d time.Duration) {
	switch {
	case s.set || s.over || s.limit <= 0:
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(d, s.look)
	default:
		s.timer.Reset(d)
	}
	s.set = true
}

// done is called when the wait is over.
func (s *stall) done() {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// look is called by the timer.
func (s *stall) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = false
	if s.over || s.since.IsZero() {
		return
	}
	if left := s.limit - time.Since(s.since); left > 0 {
		s.startLocked(left)
		return
	}
	if s.limit > 0 {
		s.over = true
		s.expire()
	}
}

// relax gives waits another limit, the one under way from now on.
func (s *stall) relax(limit time.Duration) {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	if !s.since.IsZero() {
		s.since = time.Now()
	}
}

// close ends the watch.
func (s *stall) close() {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
