package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// pass hands n over to the successor that open creates.
func pass(t *testing.T, n *Node, open func() *Node) *Node {
	t.Helper()
	file := filepath.Join(t.TempDir(), "handed")
	if err := n.HandOver(file); err != nil {
		t.Fatal(err)
	}
	next := open()
	if _, err := next.TakeOver(file); err != nil {
		t.Fatal(err)
	}
	_ = n.Close()
	return next
}

// Whenever one process hands over to the next, between outages in which posts and answers
// get lost: what was admitted is charged once.
func TestHandOversChargeOnce(t *testing.T) {
	for i, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows,
	} {
		for seed := range testdep.Longer(uint64(2), 5) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // not at the edge of a day
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				l := tidegate.MustLimit(tidegate.Spec{Name: "l", Algorithm: a, Events: 1000, Period: 4000 * time.Hour, Terms: &tidegate.Terms{
					Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal},
				}})
				backend := &lossy{Store: memory.New(), rand: rand.New(rand.NewPCG(seed, 7)), loses: 0.2, marks: map[string]uint64{}}
				open := func() *Node { return newNode(backend, forFew(Options{})) }
				n, admitted := open(), map[string]int{}
				for range 4 {
					backend.set(true)
					for k := range 30 {
						key := fmt.Sprint(k)
						admitted[key] += spend(t, n, l, key, 1+k%3)
					}
					for range 1 + r.IntN(2) {
						time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
						n = pass(t, n, open)
						backend.set(false)
						time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond) // while it posts
						n = pass(t, n, open)
					}
				}
				time.Sleep(3 * time.Minute)
				if h := n.Health(); h.Backlog != 0 || h.Lost != 0 || h.State != OK {
					t.Errorf("%s, seed %d: %+v", l, seed, h)
				}
				for key, want := range admitted {
					d := tidegate.New(backend, l).Peek(t.Context(), key)
					if used := usedOf(&d); used != int64(want) {
						t.Errorf("%s, seed %d: %d charged to %s, %d were admitted", l, seed, used, key, want)
					}
				}
				_ = n.Close()
				time.Sleep(time.Minute)
			})
		}
	}
}

// A successor refuses what its predecessor remembered, for as long, and under the same
// numbers alone; what got something back is asked again.
func TestHandOverPassesRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &faulty{}
		open := func() *Node { return newNode(backend, Options{}) }
		n := open()
		n.Forget() // rules were loaded
		two := func(events int64) *tidegate.Limit {
			return tidegate.MustLimit(tidegate.Spec{Name: "l", Algorithm: tidegate.SlidingLog, Events: events, Period: time.Minute})
		}
		l := two(2)
		for _, key := range []string{"a", "b"} {
			spend(t, n, l, key, 3)
		}
		n = pass(t, n, open)
		ask := func(l *tidegate.Limit, key string, cost int64) tidegate.Decision {
			t.Helper()
			d, err := n.Take(t.Context(), []tidegate.Check{{Key: key, Limit: l, Cost: cost}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		calls := backend.asked()
		for step := range 2 { // also by the second successor
			for _, cost := range []int64{1, 2} {
				if d := ask(l, "a", cost); d.OK || d.Receipt.Origin != tidegate.OriginRemembered || d.RetryAfter != time.Minute || backend.asked() != calls {
					t.Errorf("step %d, cost %d: %+v after %d calls", step, cost, d, backend.asked()-calls)
				}
			}
			if step == 0 {
				n = pass(t, n, open)
			}
		}
		if d := ask(two(3), "a", 1); !d.OK {
			t.Errorf("a raised limit: %+v", d)
		}
		if d := ask(l, "c", 1); !d.OK {
			t.Errorf("another key: %+v", d)
		}
		if err := n.Adjust(t.Context(), tidegate.Receipt{At: 1}, []tidegate.Check{{Key: "b", Limit: l, Cost: -1}}); err != nil {
			t.Fatal(err)
		}
		if d := ask(l, "b", 1); d.Receipt.Origin != tidegate.OriginStore {
			t.Errorf("a key that got something back: %+v", d)
		}
		time.Sleep(maxDenial)
		if d := ask(l, "a", 1); d.Receipt.Origin != tidegate.OriginStore {
			t.Errorf("after a second: %+v", d)
		}
		_ = n.Close()
	})
}

// Slots that were given back while the store was away are given back by the successor, when
// it answers.
func TestHandOverPassesReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlotTable(tidegate.FailClosed, 3)
		backend := s.backends[0]
		n := s.nodes[0]
		lim := tidegate.New(n, s.limit)
		var held []*tidegate.Reservation
		for range 5 {
			held = append(held, lim.Acquire(context.Background(), "all"))
		}
		backend.set(time.Millisecond, 1) // nothing arrives
		for range DefaultFailures {
			lim.Acquire(context.Background(), "all")
		}
		for _, slot := range held {
			_ = slot.Cancel()
		}
		if s.server.held() != 5 {
			t.Fatalf("%d held: the test has lost its point", s.server.held())
		}
		for range 2 {
			n = pass(t, n, func() *Node { return New(backend, Options{}) })
			time.Sleep(time.Second)
		}
		backend.set(time.Millisecond, 0)
		time.Sleep(3 * time.Second)
		if got := s.server.held(); got != 0 {
			t.Errorf("%d of 5 slots are held after two hand-overs", got)
		}
		_ = n.Close()
		s.close()
	})
}
