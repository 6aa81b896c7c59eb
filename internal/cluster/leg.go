package cluster

import (
	"slices"
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// leg is one call of the inner store, and all who wait for its answer. Each has a seat,
// in the order they came, and finds its own answer by that: nothing is written for any
// of them, and one broadcast wakes them all. Everything is under lane.mu until done.
// Decisions are shared, and not written to once they are here: each is the receipt of
// those who have it.
type leg struct {
	lane   *lane
	flight *flight
	told   sync.Cond    // its lock is the leg itself; see Unlock
	users  atomic.Int32 // those who wait, and the flight: the last one lets it be used again
	done   atomic.Bool  // all have an answer, and nothing changes any more

	ends    <-chan struct{} // of the context that whoever came first waits under
	mixed   bool            // others wait under others
	seats   int             // that were taken
	gone    []int           // of those who left without an answer, in order
	served  int             // so many of the others are granted what they came for
	grant   *tidegate.Decision
	refusal *tidegate.Decision // of those behind them
	err     error              // instead of it
	onward  *leg               // instead of both: they wait there, each as far behind
	sole    []tidegate.Check   // of a caller that is asked for alone: to be written to while it waits
}

func newLeg() *leg {
	l := new(leg)
	l.told.L = l
	return l
}

// Lock does nothing: who was woken has no need of the lane's lock.
func (*leg) Lock() {}

// Unlock unlocks the lane, once nobody who is woken can be missed.
func (l *leg) Unlock() { l.lane.mu.Unlock() }

// sitLocked takes a seat.
func (l *leg) sitLocked(e *end) (seat int) {
	l.users.Add(1)
	if l.seats == 0 {
		l.ends = e.done
	}
	if l.ends != e.done || e.own != nil {
		l.mixed = true
	}
	l.seats++
	return l.seats - 1
}

// place is how many are before a seat.
func (l *leg) place(seat int) int {
	if len(l.gone) == 0 {
		return seat
	}
	before, _ := slices.BinarySearch(l.gone, seat)
	return seat - before
}

// waiting is how many have no answer.
func (l *leg) waiting() int { return l.seats - len(l.gone) - l.served }

// serve tells d to as many as there are grants for, and returns how many are left over.
func (l *leg) serve(d *tidegate.Decision, grants int) int {
	n := min(grants, l.waiting())
	if n <= 0 {
		return grants
	}
	l.grant = d
	l.served += n
	return grants - n
}

// end is the answer of all who have none.
func (l *leg) end(refusal *tidegate.Decision, err error) {
	l.refusal, l.err = refusal, err
	l.done.Store(true)
}

// moveLocked has those who have no answer wait in another leg.
func (l *leg) moveLocked() *leg {
	to := l.flight.store.newLeg(l.flight)
	to.seats = l.waiting()
	to.users.Add(int32(to.seats))
	to.mixed = true
	l.onward = to
	l.done.Store(true)
	return to
}

// answer is what a seat is told; neither: nothing yet, or not here.
func (l *leg) answer(seat int) (*tidegate.Decision, error) {
	if l.place(seat) < l.served {
		return l.grant, nil
	}
	return l.refusal, l.err
}

// leaveLocked gives a seat up. A flight that is not back in time is not to be waited for:
// whoever comes next asks anew.
func (l *leg) leaveLocked(seat int) {
	at, _ := slices.BinarySearch(l.gone, seat)
	l.gone = slices.Insert(l.gone, at, seat)
	l.sole = nil
	if l.flight.overdue() {
		l.flight.unlistLocked()
	}
}

// release is called by each of users, once.
func (s *Store) release(l *leg) {
	if l.users.Add(-1) > 0 {
		return
	}
	l.lane, l.flight, l.sole, l.ends, l.mixed = nil, nil, nil, nil, false
	l.grant, l.refusal, l.err, l.onward = nil, nil, nil, nil
	l.seats, l.served, l.gone = 0, 0, l.gone[:0]
	l.done.Store(false)
	s.legs.Put(l)
}
