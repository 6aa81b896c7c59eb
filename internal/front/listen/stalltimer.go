package listen

import (
	"sync"
	"time"
)

// stallTimer ends an HTTP/2 stream whose client stalls, in one direction. The zero value
// does nothing, as over HTTP/1, where the connection bounds stalls.
type stallTimer struct {
	expire func() // ends the stream; is not called after stop

	mu      sync.Mutex
	limit   time.Duration // under mu: of one wait; 0 means any
	since   time.Time     // under mu: the start of the current wait; zero means there is none
	timer   *time.Timer   // under mu: nil before the first wait
	running bool          // under mu: the timer is
	stopped bool          // under mu
}

// begin is called before a call that waits for the client. The timer keeps running between
// waits, and finds out when it fires.
func (s *stallTimer) begin() {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	s.startLocked(s.limit)
}

// startLocked starts the timer, unless it runs, is stopped, or there is no limit.
func (s *stallTimer) startLocked(d time.Duration) {
	switch {
	case s.running || s.stopped || s.limit <= 0:
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(d, s.fire)
	default:
		s.timer.Reset(d)
	}
	s.running = true
}

// end is called after the wait.
func (s *stallTimer) end() {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// fire is called by the timer. It ends the stream if the current wait has lasted for the limit.
func (s *stallTimer) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	if s.stopped || s.since.IsZero() {
		return
	}
	if left := s.limit - time.Since(s.since); left > 0 {
		s.startLocked(left)
		return
	}
	if s.limit > 0 {
		s.stopped = true
		s.expire()
	}
}

// setLimit changes the limit; the current wait starts anew.
func (s *stallTimer) setLimit(limit time.Duration) {
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

// stop ends the timer for good.
func (s *stallTimer) stop() {
	if s.expire == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
