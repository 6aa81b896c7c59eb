package eventual

import (
	"sync"
	"sync/atomic"
	"time"
)

// quick is how many times as often as every interval counts are exchanged of keys of which little is
// left.
const quick = 4

// urgency is when a counter is exchanged.
type urgency uint8

const (
	inTime urgency = iota // at the next interval
	soon                  // a part of an interval after the last exchange
	atOnce                // somebody waits for it
)

// queue has the counters that something is to be exchanged of. There is one exchange at a time, and
// none while nothing is asked for.
type queue struct {
	mu     sync.Mutex
	due    []*counter // at the next interval
	urgent []*counter // sooner
	wanted bool       // at once
	timer  *time.Timer
	at     time.Duration // when timer ends
	busy   bool          // an exchange is under way
	idle   sync.Cond     // over mu: it no longer is
	closed bool
	last   time.Duration // when the last one began
	whole  time.Duration // when the last one of all that was due began
	oldest time.Duration // since when something waits to be told; 0 means nothing does
	missed bool          // the last exchange left something untold; only exchanges look at it

	trip  atomic.Int64 // how long that took
	away  atomic.Bool  // the last one was not answered
	since atomic.Int64 // when the one under way began; 0 means none is
}

// isAway reports whether the store does not answer, or takes long to.
func (q *queue) isAway(now, interval time.Duration) bool {
	since := time.Duration(q.since.Load())
	return q.away.Load() || since > 0 && now-since > 2*interval
}

// enqueueLocked has a counter, which is locked, take part in the next exchange.
func (s *Store) enqueueLocked(c *counter, when urgency) {
	if s.o.Tallies == nil || c.queued && (c.urgent && when < atOnce || when == inTime) {
		return
	}
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if !c.queued {
		c.queued = true
		if !c.due { // else it was exchanged before the others
			c.due = true
			q.due = append(q.due, c)
		}
		if q.oldest == 0 {
			q.oldest = s.elapsed()
		}
	}
	if when > inTime && !c.urgent {
		c.urgent = true
		q.urgent = append(q.urgent, c)
	}
	q.wanted = q.wanted || when == atOnce
	s.armLocked()
}

// armLocked sets the timer of the next exchange.
func (s *Store) armLocked() {
	q := &s.queue
	if q.busy || q.closed || len(q.due) == 0 {
		return
	}
	at := q.whole + s.o.Interval
	switch {
	case len(q.urgent) == 0 || q.away.Load():
	case q.wanted:
		at = s.elapsed()
	default:
		at = q.last + s.o.Interval/quick
	}
	if q.timer != nil {
		if q.at <= at || !q.timer.Stop() { // sooner, or it has just ended
			return
		}
	}
	q.at = at
	q.timer = time.AfterFunc(max(at-s.elapsed(), 0), s.exchangeDue)
}

// exchangeDue exchanges what is due.
func (s *Store) exchangeDue() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timer = nil
	if q.busy || q.closed {
		return
	}
	now := s.elapsed()
	if now >= q.whole+s.o.Interval {
		q.whole = now
		s.exchangeAllLocked()
		return
	}
	some := q.urgent
	q.urgent, q.wanted = nil, false
	s.exchangeLocked(some)
}

// exchangeAllLocked exchanges the counts of all that is due, as exchangeLocked does.
func (s *Store) exchangeAllLocked() {
	q, began := &s.queue, s.elapsed()
	some := q.due
	for _, c := range some {
		c.due = false
	}
	q.due, q.urgent, q.wanted = nil, nil, false
	s.exchangeLocked(some)
	switch {
	case len(q.due) == 0:
		q.oldest = 0
	case !q.missed:
		q.oldest = began // what is due now came after that
	}
}

// exchangeLocked exchanges the counts of some counters, while nobody else does. It unlocks
// meanwhile.
func (s *Store) exchangeLocked(some []*counter) {
	q := &s.queue
	q.busy, q.missed, q.last = true, false, s.elapsed()
	q.since.Store(int64(q.last))
	q.mu.Unlock()
	s.exchange(some)
	q.mu.Lock()
	q.since.Store(0)
	q.busy = false
	q.idle.Broadcast()
	s.armLocked()
}

// Flush exchanges what has not been sent, and waits for that; a second at most.
func (s *Store) Flush() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.flushLocked()
}

func (s *Store) flushLocked() {
	q := &s.queue
	for q.busy {
		q.idle.Wait()
	}
	if q.closed || len(q.due) == 0 {
		return
	}
	s.exchangeAllLocked()
}

// Close exchanges what has not been sent, and ends the exchanges.
func (s *Store) Close() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.flushLocked()
	q.closed = true
	q.away.Store(true) // nobody is to wait for an answer
	if q.timer != nil {
		q.timer.Stop()
	}
	for q.busy {
		q.idle.Wait()
	}
}
