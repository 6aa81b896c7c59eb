package eventual

import "time"

// Status is how the exchanges are going.
type Status struct {
	Keys   int   // counters that are held
	Unsent int64 // events that the other instances do not know of
	// Away is true if the store has not answered the last exchange.
	Away      bool
	Forgotten int64 // counters with unsent events that were dropped for lack of room
}

// Status returns how the exchanges are going. It looks at every counter: do not call it for every request.
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

// Lag returns the age of what the other instances know of this one's counts: at most an interval and
// two round trips while the store answers. 0 means that there was no exchange yet.
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
