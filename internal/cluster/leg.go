package cluster

import (
	"slices"
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

// leg is one call of the inner store, and all who wait for its answer. Each has a seat,
// in the order they came, and finds its own answer by that: nothing is written for any
// of them, and they are woken all at once. Everything is under lane.mu until done.
// Decisions are shared, and not written to once they are here: each is the receipt of
// those who have it.
type leg struct {
	told [tracks]bell

	lane   *lane
	flight *flight
	seats  int             // that were taken
	used   uint8           // tracks that somebody waits on, a bit each
	mixed  bool            // they wait under different contexts
	ends   <-chan struct{} // of the one that whoever came first waits under
	gone   []int           // seats of those who left without an answer, in order

	done    atomic.Bool // all have an answer, and nothing changes any more
	alone   bool        // there was one seat
	parted  atomic.Bool // of the flight and whoever had that, one needs the leg no longer
	served  int         // so many of those who have not left are granted what they came for
	grant   *tidegate.Decision
	refusal *tidegate.Decision // of those behind them
	err     error              // instead of it
	onward  *leg               // instead of both: they wait there, each as far behind
	sole    []tidegate.Check   // of a caller that is asked for alone: to be written to while it waits
}

// bell is what those on one track wait for. Its lock is the leg itself; see Unlock.
type bell struct {
	sync.Cond
	_ [8]byte // each has a cache line for itself
}

func newLeg() *leg {
	l := new(leg)
	for i := range l.told {
		l.told[i].L = l
	}
	return l
}

// Lock does nothing: who was woken has no need of the lane's lock.
func (*leg) Lock() {}

// Unlock unlocks the lane, once nobody who is woken can be missed.
func (l *leg) Unlock() { l.lane.mu.Unlock() }

// sitLocked takes a seat.
func (l *leg) sitLocked(e *patience) (seat int) {
	if l.seats == 0 {
		l.ends = e.done
	}
	if l.ends != e.done || e.own != nil {
		l.mixed = true
	}
	l.seats++
	return l.seats - 1
}

// waitLocked waits until the leg is done, or somebody has to look at it. It unlocks the
// lane.
func (l *leg) waitLocked(track int) {
	l.used |= 1 << track
	l.told[track].Wait()
}

func (l *leg) wakeAll() {
	for i := range l.told {
		l.told[i].Broadcast()
	}
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

// conclude gives an answer to all who have none.
func (l *leg) conclude(refusal *tidegate.Decision, err error) {
	l.refusal, l.err = refusal, err
	l.alone = l.seats == 1 && len(l.gone) == 0
	l.done.Store(true)
}

// moveLocked has those who have no answer wait in another leg.
func (l *leg) moveLocked() *leg {
	to := l.flight.store.newLeg(l.flight)
	to.seats = l.waiting()
	to.mixed = true
	l.onward = to
	l.done.Store(true)
	return to
}

// answer is what a seat is told by a leg that is done; neither: it is told by another.
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

// release lets a leg that had one seat be used again, when it is called for the second
// time: by the flight, and by who had an answer. Those of many are left to the garbage
// collector: to count down who has not looked yet would have one word of memory go from
// core to core, for each of them.
func (s *Store) release(l *leg) {
	if !l.alone || !l.parted.Swap(true) {
		return
	}
	l.lane, l.flight, l.sole, l.ends = nil, nil, nil, nil
	l.grant, l.refusal, l.err = nil, nil, nil
	l.seats, l.served, l.used, l.mixed, l.alone = 0, 0, 0, false, false
	l.done.Store(false)
	l.parted.Store(false)
	s.legs.Put(l)
}
