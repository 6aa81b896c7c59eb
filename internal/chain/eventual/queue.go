package eventual

import (
	"sync"
	"sync/atomic"
	"time"
)

// quick is how many times in an interval a key of which little is left may be exchanged.
const quick = 4

// urgency says when a counter is to be exchanged.
type urgency uint8

const (
	inTime urgency = iota // at the next interval
	soon                  // 1/quick of an interval after the last exchange began
	atOnce                // a request waits for it
)

// queue holds the counters that wait for an exchange. There is one exchange at a time, and none while
// no requests come.
type queue struct {
	mu     sync.Mutex
	due    []*counter // all that wait, for the next interval
	urgent []*counter // of those, the ones to be exchanged sooner
	wanted bool       // urgent is to be exchanged at once
	timer  *time.Timer
	at     time.Duration // when timer fires
	busy   bool          // an exchange is under way
	idle   sync.Cond     // uses mu: busy has become false
	flush  int           // how many calls of Flush and Close wait for it: the timer starts no other before
	closed bool
	last   time.Duration // when the last exchange began
	whole  time.Duration // when the last exchange of all of due began
	oldest time.Duration // since when something waits to be sent; 0 means nothing does
	missed bool          // the last exchange has left something unsent; only exchanges use it

	trip  atomic.Int64 // how long the last answered call of the store took
	away  atomic.Bool  // the last call of the store was not answered
	since atomic.Int64 // when the call under way began; 0 means none is
}

// isAway reports whether the store has not answered the last call, or takes more than two intervals now.
func (q *queue) isAway(now, interval time.Duration) bool {
	since := time.Duration(q.since.Load())
	return q.away.Load() || since > 0 && now-since > 2*interval
}

// enqueueLocked adds a counter, which is locked, to the queue.
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
		if !c.due { // an urgent one stays in due after its exchange
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
	if q.busy || q.flush > 0 || q.closed || len(q.due) == 0 {
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
		if q.at <= at || !q.timer.Stop() { // it fires earlier, or has just fired
			return
		}
	}
	q.at = at
	q.timer = time.AfterFunc(max(at-s.elapsed(), 0), s.exchangeDue)
}

// exchangeDue is called by the timer: it exchanges all counters if an interval has passed, otherwise
// the urgent ones.
func (s *Store) exchangeDue() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timer = nil
	if q.busy || q.flush > 0 || q.closed {
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

// exchangeAllLocked is exchangeLocked for all counters that are due.
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

// exchangeLocked exchanges the counts of some counters. It unlocks mu meanwhile; busy keeps other
// exchanges away.
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

// Flush exchanges what has not been sent, and waits for that. A store that does not answer is given up
// after about a second, two if an exchange is already under way.
func (s *Store) Flush() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.flushLocked()
}

func (s *Store) flushLocked() {
	q := &s.queue
	q.flush++
	for q.busy {
		q.idle.Wait()
	}
	if !q.closed && len(q.due) > 0 {
		s.exchangeAllLocked()
	}
	q.flush--
	s.armLocked()
}

// Close exchanges what has not been sent, and ends the exchanges.
func (s *Store) Close() {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s.flushLocked()
	q.closed = true
	q.away.Store(true) // so that no request waits for an exchange
	if q.timer != nil {
		q.timer.Stop()
	}
	for q.busy {
		q.idle.Wait()
	}
}
