package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// slotServer is a server of slots that have names, as store/redis/script/leases.lua has it.
type slotServer struct {
	mu        sync.Mutex
	ends      map[tidegate.Handle]time.Time // of held slots
	marks     map[tidegate.Handle]time.Time // of names that were given back too early
	most      int                           // ever held at the same time
	overtaken int                           // refused because of a mark
}

func newSlotServer() *slotServer {
	return &slotServer{ends: map[tidegate.Handle]time.Time{}, marks: map[tidegate.Handle]time.Time{}}
}

func (s *slotServer) heldLocked() (n int) {
	now := time.Now()
	for _, ends := range s.ends {
		if ends.After(now) {
			n++
		}
	}
	return n
}

func (s *slotServer) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heldLocked()
}

func (s *slotServer) acquire(l *tidegate.Limit, name tidegate.Handle) tidegate.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks[name].After(time.Now()) {
		s.overtaken++
		return tidegate.Decision{Limit: l}
	}
	n := s.heldLocked()
	if n >= int(l.Events) {
		return tidegate.Decision{Limit: l, RetryAfter: l.Period, Receipt: tidegate.Receipt{At: 1}}
	}
	s.ends[name] = time.Now().Add(l.Period)
	s.most = max(s.most, n+1)
	return tidegate.Decision{OK: true, Granted: 1, Limit: l, Remaining: l.Events - int64(n) - 1, Receipt: tidegate.Receipt{At: 1, Handle: name}}
}

func (s *slotServer) release(l *tidegate.Limit, name tidegate.Handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends[name].After(time.Now()) {
		delete(s.ends, name)
	} else {
		s.marks[name] = time.Now().Add(l.Period)
	}
}

// slotBackend connects a node to such a server. Messages take their time, each its own, so that
// one overtakes another, and get lost, there and back. Callers give up with their context;
// what was sent still arrives.
type slotBackend struct {
	chain.Backend // the rest is not asked
	server        *slotServer
	mu            sync.Mutex
	rand          *rand.Rand
	trip          time.Duration // of a message there and back, on average
	loss          float64       // of messages
	fates         []fate        // of the next ones, before it goes by chance
}

// fate is what becomes of a message.
type fate struct {
	takes time.Duration
	lost  bool
}

func (w *slotBackend) set(trip time.Duration, loss float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trip, w.loss = trip, loss
}

// wait takes the time of a message, and reports whether it arrives.
func (f fate) wait() bool {
	time.Sleep(f.takes)
	return !f.lost
}

// next is what becomes of the next message.
func (w *slotBackend) next() fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.fates) > 0 {
		next := w.fates[0]
		w.fates = w.fates[1:]
		return next
	}
	return fate{time.Duration(float64(w.trip/2) * (0.5 + w.rand.Float64())), w.rand.Float64() < w.loss}
}

// send has do done at the server, and waits for its answer.
func (w *slotBackend) send(ctx context.Context, do func()) error {
	there, back := w.next(), w.next()
	return send(ctx, there.wait, back.wait, do)
}

func (w *slotBackend) MaxBatch() int { return 1 }

func (w *slotBackend) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	a := &asks[0]
	limit, name := a.Checks[0].Limit, a.Handle
	if name.IsZero() {
		return errors.New("slots without a name")
	}
	var d tidegate.Decision
	err := w.send(ctx, func() { d = w.server.acquire(limit, name) })
	if err == nil {
		a.Granted = d
	}
	return err
}

func (w *slotBackend) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) { // of probes
	return tidegate.Decision{OK: true, Granted: int64(n), Limit: checks[0].Limit}, w.send(ctx, func() {})
}

func (w *slotBackend) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	limit := checks[0].Limit
	return w.send(ctx, func() { w.server.release(limit, r.Handle) })
}

// slotTable is three nodes that share slots, each over a backend of its own.
type slotTable struct {
	limit    *tidegate.Limit
	server   *slotServer
	backends []*slotBackend
	nodes    []*Node
}

func newSlotTable(mode tidegate.FailMode, seed uint64) *slotTable {
	s := &slotTable{server: newSlotServer(), limit: tidegate.MustLimit(tidegate.Spec{
		Name: "slots", Events: 20, Period: 30 * time.Second, Algorithm: tidegate.Concurrency,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: mode}},
	})}
	for i := range 3 {
		backend := &slotBackend{Backend: chain.Adapt(&faulty{}), server: s.server, rand: rand.New(rand.NewPCG(seed, uint64(i))), trip: time.Millisecond}
		s.backends = append(s.backends, backend)
		s.nodes = append(s.nodes, New(backend, forFew(Options{Instances: func() int { return 3 }})))
	}
	return s
}

// visit takes a slot of a node, holds it and gives it back.
func (s *slotTable) visit(ctx context.Context, node int, hold time.Duration) tidegate.Decision {
	slot := tidegate.New(s.nodes[node%3], s.limit).Acquire(ctx, "all")
	if slot.OK {
		time.Sleep(hold)
		_ = slot.Cancel()
	}
	return slot.Decision
}

func (s *slotTable) close() {
	for _, n := range s.nodes {
		_ = n.Close()
	}
	time.Sleep(5 * time.Second)
}

// Slots under late replies: while messages take from nothing to ten deadlines and up to
// half of them get lost, callers give up, leave, and give back. When that is over, all
// slots are free and callers are admitted, long before a lease has run out.
func TestSlotsUnderLateAndLostReplies(t *testing.T) {
	overtaken := 0
	for i, trip := range []time.Duration{0, 1, 5, 12, 20, 24, 25, 26, 30, 50, 100, 150, 250} {
		for _, loss := range []float64{0, 0.1, 0.25, 0.5} {
			if testdep.RaceEnabled && i%3 > 0 {
				continue // it takes its time, and shows no more
			}
			for _, mode := range []tidegate.FailMode{tidegate.FailLocal, tidegate.FailClosed, tidegate.FailOpen} {
				synctest.Test(t, func(t *testing.T) {
					trip := trip * time.Millisecond
					s := newSlotTable(mode, uint64(i))
					for _, backend := range s.backends {
						backend.set(trip, loss)
					}
					refused := 0
					var mu sync.Mutex
					var visits sync.WaitGroup
					for k := range 200 {
						visits.Go(func() {
							ctx, cancel := context.WithCancel(context.Background())
							defer cancel()
							if k%7 == 0 { // its client leaves, sooner or later
								time.AfterFunc(time.Duration(k%40)*time.Millisecond, cancel)
							}
							if d := s.visit(ctx, k, 20*time.Millisecond); !d.OK && ctx.Err() == nil {
								mu.Lock()
								refused++
								mu.Unlock()
							}
						})
						time.Sleep(5 * time.Millisecond) // four or five are in use at a time
					}
					if trip <= 12*time.Millisecond && loss == 0 && refused > 0 {
						t.Errorf("%s: %d refused while nothing was late", trip, refused)
					}
					for _, backend := range s.backends {
						backend.set(time.Millisecond, 0)
					}
					visits.Wait()
					time.Sleep(3 * time.Second) // it recovers
					if n := s.server.held(); n != 0 {
						t.Errorf("%s, %g lost, mode %d: %d of 20 slots are still held", trip, loss, mode, n)
					}
					for k := range 100 {
						if d := s.visit(context.Background(), k, 5*time.Millisecond); !d.OK || d.Receipt.Origin != tidegate.OriginStore {
							t.Errorf("%s, %g lost, mode %d: request %d afterwards: %+v", trip, loss, mode, k, d)
							break
						}
					}
					if s.server.most > 20 {
						t.Errorf("%d slots were held at a time", s.server.most)
					}
					s.close()
					overtaken += s.server.overtaken
				})
			}
		}
	}
	if overtaken == 0 {
		t.Error("no release has overtaken what it gives back: the test has lost its point")
	}
}

// What is given up on is free a round trip later: a reply that is lost for good costs one
// release. One that is lost itself is repeated, and one that comes first has its slot
// refused.
func TestSlotGivenUpIsFreeAtOnce(t *testing.T) {
	const ms = time.Millisecond
	lost := fate{lost: true}
	f := func(what string, leaves, freed time.Duration, overtaken int, fates ...fate) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newSlotTable(tidegate.FailClosed, 1)
			s.backends[0].fates = fates
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if leaves > 0 {
				time.AfterFunc(leaves, cancel)
			}
			go s.visit(ctx, 0, 0)
			time.Sleep(freed)
			if n := s.server.held(); n != 0 {
				t.Errorf("%s: %d held after %s", what, n, freed)
			}
			s.server.mu.Lock()
			if s.server.overtaken != overtaken {
				t.Errorf("%s: %d overtaken, want %d", what, s.server.overtaken, overtaken)
			}
			s.server.mu.Unlock()
			s.close()
		})
	}
	// There and back for taking it, there and back for giving it back.
	f("the reply is lost", 0, 28*ms, 0, fate{takes: ms}, lost, fate{takes: ms}, fate{takes: ms})
	f("its caller leaves, the reply is lost", 5*ms, 7*ms, 0, fate{takes: ms}, lost, fate{takes: ms}, fate{takes: ms})
	f("its caller leaves, the reply is late", 5*ms, 7*ms, 0, fate{takes: ms}, fate{takes: 20 * ms}, fate{takes: ms}, fate{takes: ms})
	f("the release comes first", 0, 150*ms, 1, fate{takes: 100 * ms}, fate{takes: ms}, fate{takes: ms}, fate{takes: ms})
	f("it comes when nobody waits any more", 0, 3*time.Second, 1, fate{takes: 2 * time.Second}, lost, fate{takes: ms}, fate{takes: ms})
	f("it never comes", 0, 28*ms, 0, lost, lost, fate{takes: ms}, fate{takes: ms})
	f("the release is lost as well", 0, 500*ms, 0, fate{takes: ms}, lost, lost, lost, fate{takes: ms}, fate{takes: ms})
	f("the reply to the release is lost", 0, 28*ms, 0, fate{takes: ms}, lost, fate{takes: ms}, lost, fate{takes: ms}, fate{takes: ms})
}
