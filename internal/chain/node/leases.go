package node

import (
	"errors"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// LostLease reports slots whose leases had run out when they were to be renewed: more slots than
// the limit may be in use.
type LostLease struct {
	Rule  string // its limit's name; those of all limits that were renewed together
	Since time.Time
	Count int64 // renewals, since New
	// Over: no more were lost for lostOver.
	Over bool
}

// lostOver is how long no lease must be lost for the trouble to be over.
const lostOver = time.Minute

// lostLeases calls tell when leases begin to be lost, and when that is over; not for each.
type lostLeases struct {
	tell func(LostLease)

	mu     sync.Mutex
	is     LostLease // under mu
	last   time.Time // under mu: when one was lost
	going  bool      // under mu: it is not over
	closed bool      // under mu
}

// renewed notes the result of renewing the slots of checks.
func (l *lostLeases) renewed(checks []tidegate.Check, err error) {
	if !errors.Is(err, tidegate.ErrLeaseLost) {
		return
	}
	l.mu.Lock()
	now := time.Now()
	l.is.Count++
	l.last = now
	began := !l.going && !l.closed
	if began {
		l.going = true
		l.is.Rule, l.is.Since, l.is.Over = rulesOf(checks), now, false
		time.AfterFunc(lostOver, l.look)
	}
	told := l.is
	l.mu.Unlock()
	if began && l.tell != nil {
		l.tell(told)
	}
}

// look checks whether the trouble is over; if not, it checks again later.
func (l *lostLeases) look() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	if quiet := time.Since(l.last); quiet < lostOver {
		l.mu.Unlock()
		time.AfterFunc(lostOver-quiet, l.look)
		return
	}
	l.going, l.is.Over = false, true
	told := l.is
	l.mu.Unlock()
	if l.tell != nil {
		l.tell(told)
	}
}

func (l *lostLeases) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is.Count
}

func (l *lostLeases) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
}
