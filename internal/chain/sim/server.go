package sim

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/eventual/hub"
	"tidegate.dev/tidegate/store/memory"
)

// server is the simulated Redis: the counters that all nodes share, by a clock of its own.
// It decides as store/redis does: slots have the names that callers chose, posts count once.
type server struct {
	Server
	start  time.Time // of the run
	faults timeline
	bytes  int64

	mu     sync.Mutex
	state  state
	busy   time.Time                  // it works until then
	copies map[time.Duration]*replica // by the time of the failover
}

// state is what a server loses when it loses its memory.
type state struct {
	store   *memory.Store
	held    map[tidegate.Handle]tidegate.Receipt // slots, by their names
	marks   map[tidegate.Handle]time.Time        // names given back before they were taken, and until when that is known
	posted  map[postName]uint64                  // the number of the last post
	listed  map[string]time.Time                 // instances, and until when they count
	lent    lentBuckets
	tallies *hub.Hub // what instances have counted by themselves
}

// postName names a counter that an instance posts to; boot is that of the instance.
type postName struct {
	boot          [2]uint64
	identity, key string
}

// replica is what a server will be after a failover.
type replica struct {
	state state
	file  string
}

func newServer(s *Scenario, start time.Time) *server {
	sv := &server{Server: s.Server, start: start, faults: s.Faults, bytes: 64 << 20, copies: map[time.Duration]*replica{}}
	sv.state = sv.empty()
	return sv
}

// now returns the time by the server's clock.
func (s *server) now() time.Time { return s.clockAt(time.Now()) }

// clockAt returns what the server's clock shows at a time of the nodes' clocks.
func (s *server) clockAt(t time.Time) time.Time {
	return t.Add(s.Skew + time.Duration(s.Drift*float64(t.Sub(s.start))))
}

func (s *server) empty() state {
	return state{
		store: memory.Open(memory.Config{MaxBytes: s.bytes, Now: s.now}),
		held:  map[tidegate.Handle]tidegate.Receipt{}, marks: map[tidegate.Handle]time.Time{},
		posted: map[postName]uint64{}, listed: map[string]time.Time{}, lent: lentBuckets{}, tallies: hub.New(s.now),
	}
}

// loseAll restarts the server without its data.
func (s *server) loseAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = s.empty()
}

// replicate keeps a copy of the counters, for the failover at that time, in a file in dir. Which
// slots are held under which names is not copied: their leases are lost.
func (s *server) replicate(at time.Duration, dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &replica{state: s.empty(), file: filepath.Join(dir, at.String())}
	r.state.lent = s.state.lent.clone()
	r.state.tallies = s.state.tallies.Clone()
	for name, number := range s.state.posted {
		r.state.posted[name] = number
	}
	for id, until := range s.state.listed {
		r.state.listed[id] = until
	}
	s.copies[at] = r
	return s.state.store.Snapshot(r.file)
}

// failOver goes on with the copy that was kept for that time.
func (s *server) failOver(at time.Duration) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.copies[at]
	r.state.store, err = memory.Restore(r.file, memory.Config{MaxBytes: s.bytes, Now: s.now})
	if err == nil {
		s.state = r.state
		err = os.Remove(r.file)
	}
	return err
}

// work has the server work on so many calls that arrived now. It returns how long it takes until
// they are done, including what the server has to finish before them.
func (s *server) work(calls int) time.Duration {
	if s.PerCall == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.busy.Before(now) {
		s.busy = now
	}
	s.busy = s.busy.Add(s.PerCall * time.Duration(calls))
	return s.busy.Sub(now)
}

// takeBatch decides about each ask.
func (s *server) takeBatch(asks []chain.Ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range asks {
		a := &asks[i]
		a.Rest = tidegate.Decision{}
		if !a.Handle.IsZero() && hasSlots(a.Checks) {
			a.Granted, a.Rest, a.Err = s.takeSlotsLocked(a)
			continue
		}
		s.takeLocked(a)
	}
}

// post charges an amount, once.
func (s *server) post(p chain.Post) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := postName{p.Boot, p.Check.Limit.Identity(), p.Check.Key}
	if s.state.posted[name] >= p.Number {
		return nil
	}
	s.state.posted[name] = p.Number
	s.noteChargeLocked(&p.Check)
	return s.state.store.Adjust(context.Background(), tidegate.Receipt{}, []tidegate.Check{p.Check})
}

// beat counts an instance among the live ones for its TTL, and returns how many there are and its
// rank among them.
func (s *server) beat(h chain.Heartbeat) (r chain.Roster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r.Listed = s.state.listed[h.ID].After(now)
	s.state.listed[h.ID] = now.Add(h.TTL)
	for id, until := range s.state.listed {
		if until.After(now) {
			r.Live++
			if id < h.ID {
				r.Rank++
			}
		}
	}
	return r
}

func (s *server) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.listed, id)
}
