package cluster

import (
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// flight is the inner store being asked for a vector, for all who want that. Those who
// come meanwhile wait for the next call, which asks for as many copies as they are.
// Grants go to those who wait, in the order they came; one whose waiter has left goes to
// the next, and stays charged if there is none.
type flight struct {
	store *Store
	lane  *lane
	hash  uint64
	known bool // under lane.mu: it is in lane.flights
	ways  ways
	vector
	copies int    // that each who waits asks for
	run    func() // f.fly, made once

	aboard  *leg          // under lane.mu: for whom the inner store is asked
	next    *leg          // under lane.mu: who came meanwhile; nil: nobody
	boarded bool          // under lane.mu: a call is under way for those aboard
	due     time.Duration // under lane.mu: when the call under way has to be back
	sent    stamp         // when it began

	before, behind *flight // under lane.mu: in lane.first
}

// lanes are where flights are found, by the hash of their vectors.
const lanes = 64

type lane struct {
	mu      sync.Mutex
	flights map[uint64]*flight
	last    *flight  // under mu: one of flights, the last that was found; nil: none
	first   *flight  // under mu: of all, those included that nobody is to find
	asked   uint64   // under mu: so many came here
	_       [24]byte // locks of different lanes do not meet in one cache line
}

func newFlight(s *Store) *flight {
	f := &flight{store: s}
	f.run = f.fly
	return f
}

// join waits for the answer to checks, with others who want the same if it can. What it
// returns is shared with them.
func (s *Store) join(e *patience, checks []tidegate.Check, n int, w ways) (*tidegate.Decision, error) {
	hash := s.hash(checks)
	at, track := &s.lanes[hash%lanes], s.track()
	at.mu.Lock()
	at.asked++
	if l := at.legLocked(hash, checks, w); l != nil {
		return s.awaitLocked(e, l, l.sitLocked(e), track)
	}
	f := s.departLocked(at, hash, checks, n, w)
	if f == nil {
		at.mu.Unlock()
		return nil, ErrBusy
	}
	l := f.aboard
	seat := l.sitLocked(e)
	at.mu.Unlock()
	s.launch(f)
	at.mu.Lock()
	return s.awaitLocked(e, l, seat, track)
}

// legLocked is one that checks can be asked for with; nil: there is none.
func (at *lane) legLocked(hash uint64, checks []tidegate.Check, w ways) *leg {
	if w&together == 0 {
		return nil
	}
	f := at.last
	if f == nil || f.hash != hash {
		if f = at.flights[hash]; f == nil {
			return nil
		}
		at.last = f
	}
	if !same(f.checks, checks) {
		return nil
	}
	if !f.boarded && f.next == nil {
		return f.aboard
	}
	if f.next == nil {
		f.next = f.store.newLeg(f)
	}
	return f.next
}

// departLocked is a flight of its own; nil: too many have not come back.
func (s *Store) departLocked(at *lane, hash uint64, checks []tidegate.Check, n int, w ways) *flight {
	if !s.begin() {
		return nil
	}
	f := s.flights.Get().(*flight)
	f.lane, f.hash, f.ways, f.copies = at, hash, w, n
	f.copy(checks)
	f.listLocked(w&together != 0 && at.flights[hash] == nil)
	f.aboard = s.newLeg(f)
	if w&together == 0 {
		f.aboard.sole = checks
	}
	return f
}

func (s *Store) newLeg(f *flight) *leg {
	l := s.legs.Get().(*leg)
	l.lane, l.flight = f.lane, f
	return l
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

// awaitLocked returns when a seat has its answer, or its caller has waited long enough.
// It unlocks the lane.
func (s *Store) awaitLocked(e *patience, l *leg, seat, track int) (*tidegate.Decision, error) {
	at := l.lane
	for {
		if l.done.Load() {
			if on := l.onward; on != nil && l.place(seat) >= l.served {
				l, seat = on, l.place(seat)-l.served
				continue
			}
			at.mu.Unlock()
			d, err := l.answer(seat)
			s.release(l)
			return d, err
		}
		if err := s.reached(e); err != nil {
			l.leaveLocked(seat)
			at.mu.Unlock()
			return nil, err
		}
		l.waitLocked(track) // which unlocks
		if l.done.Load() {
			if d, err := l.answer(seat); d != nil || err != nil {
				s.release(l)
				return d, err
			}
		}
		at.mu.Lock()
	}
}

// listLocked has f found by the hash of its vector, if it may be, and by the lane anyway.
func (f *flight) listLocked(known bool) {
	at := f.lane
	if f.known = known; known {
		at.flights[f.hash] = f
	}
	f.behind = at.first
	if f.behind != nil {
		f.behind.before = f
	}
	at.first = f
}

func (f *flight) unlistLocked() {
	if f.known {
		f.known = false
		delete(f.lane.flights, f.hash)
		if f.lane.last == f {
			f.lane.last = nil
		}
	}
}

// goneLocked takes f out of its lane.
func (f *flight) goneLocked() {
	f.unlistLocked()
	if f.before == nil {
		f.lane.first = f.behind
	} else {
		f.before.behind = f.behind
	}
	if f.behind != nil {
		f.behind.before = f.before
	}
	f.before, f.behind = nil, nil
}
