package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Whenever the server stands still and goes on, and whoever decides meanwhile: in the end it has counted
// what was admitted, neither more nor less. It cannot be known of calls that had no answer at all.
func TestStallsChargeOnce(t *testing.T) {
	seeds := testdep.Longer(25, 3000)
	if testdep.RaceEnabled && !testdep.Long() { // it takes its time
		seeds = 6
	}
	for _, nodes := range []int{1, 3} {
		for _, callers := range []int{1, 12} {
			for _, longest := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 8 * time.Second} {
				t.Run(fmt.Sprint(nodes, callers, longest), func(t *testing.T) {
					for seed := range uint64(seeds) {
						synctest.Test(t, func(t *testing.T) {
							s := newStalled(t, seed, nodes, newStalling())
							s.run(callers, longest)
							time.Sleep(10 * time.Second)
							s.compare()
						})
					}
				})
			}
		}
	}
}

// stallable is a server that can be made to stand still.
type stallable interface {
	chain.Backend
	stop()
	resume()
	// used is what it says is used, and what calls without an answer were about.
	used(c tidegate.Check) (used, doubt int64)
}

// stalled is nodes that are asked at random while their server stands still now and then.
type stalled struct {
	*testing.T
	seed     uint64
	server   stallable
	nodes    []*Node
	counters []tidegate.Check

	mu   sync.Mutex
	want map[string]int64 // what was admitted, by counter
}

func newStalled(t *testing.T, seed uint64, nodes int, server stallable) *stalled {
	s := &stalled{T: t, seed: seed, server: server, want: map[string]int64{}}
	for range nodes {
		s.nodes = append(s.nodes, New(s.server, forFew(Options{Instances: func() int { return nodes }})))
	}
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		for _, events := range []int64{10, 40} {
			l := tidegate.MustLimit(tidegate.Spec{Name: fmt.Sprint(a, events), Events: events, Period: 30 * 24 * time.Hour, Algorithm: a})
			s.counters = append(s.counters, tidegate.Check{Key: "a", Limit: l}, tidegate.Check{Key: "b", Limit: l})
		}
	}
	return s
}

// run has callers ask, and the server stand still for up to longest at a time.
func (s *stalled) run(callers int, longest time.Duration) {
	var asking, stalling sync.WaitGroup
	for i := range callers {
		random := rand.New(rand.NewPCG(s.seed, uint64(i)))
		asking.Go(func() {
			for range 60 / min(callers, 4) {
				time.Sleep(time.Duration(random.IntN(1<<random.IntN(9))) * time.Millisecond)
				s.ask(random)
			}
		})
	}
	over := make(chan struct{})
	stalling.Go(func() {
		random := rand.New(rand.NewPCG(s.seed, 1000))
		for {
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
			s.server.stop()
			time.Sleep(longest >> random.IntN(8))
			s.server.resume()
			select {
			case <-over:
				return
			default:
			}
		}
	})
	asking.Wait()
	close(over)
	stalling.Wait()
}

// ask takes one to three checks, or one that others take at the same time.
func (s *stalled) ask(random *rand.Rand) {
	var checks []tidegate.Check
	for range 1 + random.IntN(3) {
		c := s.counters[random.IntN(len(s.counters))]
		c.Cost = random.Int64N(4)
		checks = append(checks, c)
	}
	if random.IntN(3) == 0 {
		checks = append(checks[:0], s.counters[0])
		checks[0].Cost = 1
	}
	d, err := s.nodes[random.IntN(len(s.nodes))].Take(context.Background(), checks, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.Error(err)
	}
	for i := range checks {
		if d.OK {
			s.want[counterName(&checks[i])] += checks[i].Cost
		}
	}
}

// compare compares, when all is settled.
func (s *stalled) compare() {
	s.Helper()
	for _, g := range s.nodes {
		if h := g.Health(); h.State != OK || h.Backlog != 0 || h.InFlight != 0 {
			s.Errorf("seed %d: %+v", s.seed, h)
		}
		_ = g.Close()
	}
	for _, c := range s.counters {
		used, doubt := s.server.used(c)
		// More may have been admitted than the limit: of several limits a node remembers one.
		want, most := s.want[counterName(&c)], c.Limit.Capacity()
		if used < min(want-doubt, most) || used > min(want+doubt, most) {
			s.Errorf("seed %d, %s of %s: %d used, want %d ± %d", s.seed, c.Key, c.Limit, used, want, doubt)
		}
	}
}
