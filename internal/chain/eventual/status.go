package eventual

import "time"

// Status is how the exchanges are going.
type Status struct {
	Keys   int   // that are held
	Unsent int64 // events that the other instances do not know of
	// Away: the last exchange was not answered.
	Away      bool
	Forgotten int64 // keys dropped for lack of room that had unsent events
}

// Status looks at every key: do not call it for every request.
func (s *Store) Status() (is Status) {
	us := s.clock.now().UnixMicro()
	s.table.each(func(c *counter) {
		c.mu.Lock()
		defer c.mu.Unlock()
		is.Keys++
		is.Unsent += c.unsentLocked(us)
	})
	is.Away, is.Forgotten = s.queue.away.Load(), s.table.forgotten.Load()
	return is
}

// Lag is how old what other instances know of this one is: at most an interval and two round trips,
// unless the store does not answer. 0 means that there was no exchange.
func (s *Store) Lag() time.Duration {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	lag := time.Duration(q.trip.Load())
	if q.oldest > 0 {
		lag += s.elapsed() - q.oldest
	}
	return lag
}
