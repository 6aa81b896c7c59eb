package cluster

import (
	"context"
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// flight is the inner store being asked for a vector, for all who want that. Those who
// come meanwhile wait for the next call, which asks for as many copies as they want.
// Nobody waits who comes alone. Grants go to those who wait, in the order they came;
// one whose waiter has left goes to the next, and stays charged if there is none.
type flight struct {
	store *Store
	lane  *lane
	hash  uint64
	known bool // under lane.mu: it is in lane.flights
	ways  ways
	vector
	run func() // f.fly, made once

	lines  [2]line
	aboard *line         // under lane.mu: for whom the inner store is asked
	next   *line         // under lane.mu: who came meanwhile
	told   line          // those with an answer, to be woken
	due    time.Duration // under lane.mu: when the call under way has to be back
	sent   stamp         // when it began

	watch   *watch          // under lane.mu: the latest of watches; nil: none
	watches []*watch        // under lane.mu
	ends    <-chan struct{} // under lane.mu: of who came last without one
}

// lanes are where flights are found, by the hash of their vectors.
const lanes = 64

type lane struct {
	mu      sync.Mutex
	flights map[uint64]*flight
	asked   uint64   // under mu: so many came here
	_       [40]byte // locks of different lanes do not meet in one cache line
}

func newFlight(s *Store) *flight {
	f := &flight{store: s}
	f.run = f.fly
	f.aboard, f.next = &f.lines[0], &f.lines[1]
	return f
}

// join waits for the answer to checks, with others who want the same if it can.
func (s *Store) join(ctx context.Context, checks []tidegate.Check, n int, w ways) (tidegate.Decision, error) {
	hash := s.hash(checks)
	me := s.waiters.Get().(*waiter)
	at := &s.lanes[hash%lanes]
	me.n, me.checks, me.lane = n, checks, at
	_, ends := ctx.Deadline()
	at.mu.Lock()
	at.asked++
	other := at.flights[hash]
	if other != nil && w&together != 0 && same(other.checks, checks) {
		me.flight = other
		other.next.push(me)
		if ends {
			me.watch = other.watchLocked(ctx)
		}
		at.mu.Unlock()
		return s.await(ctx, me)
	}
	if !s.begin() {
		at.mu.Unlock()
		s.drop(me)
		return tidegate.Decision{}, ErrBusy
	}
	f := s.flights.Get().(*flight)
	f.lane, f.hash, f.ways = at, hash, w
	f.copy(checks)
	me.flight = f
	f.aboard.push(me)
	if f.known = other == nil && w&together != 0; f.known {
		at.flights[hash] = f
	}
	at.mu.Unlock()
	s.launch(f)
	return s.await(ctx, me)
}

// begin reports whether the inner store may be called once more.
func (s *Store) begin() bool {
	if s.flying.Add(1) > int64(s.o.InFlight) {
		s.flying.Add(-1)
		s.count.busy.Add(1)
		return false
	}
	return true
}

// await returns when w has its answer, or its caller has waited long enough.
func (s *Store) await(ctx context.Context, w *waiter) (tidegate.Decision, error) {
	if w.watch != nil {
		<-w.done
	} else if err := s.patient(ctx, w.done); err != nil {
		if w.leave() {
			s.drop(w)
			return tidegate.Decision{}, err
		}
		<-w.done
	}
	d, err := w.d, w.err
	s.drop(w)
	return d, err
}

// patient waits for done, and returns why it no longer does.
func (s *Store) patient(ctx context.Context, done <-chan struct{}) error {
	if _, ok := ctx.Deadline(); ok {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-done:
		return nil
	case <-s.deadline().Done():
		return s.late
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) drop(w *waiter) {
	w.checks, w.flight, w.lane, w.watch, w.err = nil, nil, nil, nil, nil // what is in d is written over
	s.waiters.Put(w)
}
