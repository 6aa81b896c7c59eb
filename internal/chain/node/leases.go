package node

import (
	"errors"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// LostLease is slots whose leases had run out when they were to be renewed: others may have
// been admitted beside those who hold them.
type LostLease struct {
	Rule  string // its limit's name; those of all limits that were renewed together
	Since time.Time
	Count int64 // renewals, since New
	// Over: none was lost for a while.
	Over bool
}

// lostOver is how long no lease may be lost until that is over.
const lostOver = time.Minute

// lostLeases says when leases are lost, and when that is over; not of each.
type lostLeases struct {
	tell func(LostLease)

	mu     sync.Mutex
	is     LostLease // under mu
	last   time.Time // under mu: when one was lost
	going  bool      // under mu: it is not over
	closed bool      // under mu
}

// renewed is told what came of renewing the slots of checks.
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

// look looks whether it is over, and if not again later.
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
