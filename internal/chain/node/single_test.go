package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// flaky is a shared counter that is a round trip away, and answers single calls with an
// error instead of deciding. Posts arrive.
type flaky struct {
	*memory.Store
	trip  time.Duration
	fails func() bool // whether the next call does
}

func (f *flaky) MaxBatch() int { return 32 }

func (f *flaky) TakeBatch(_ context.Context, asks []chain.Ask) error {
	fails := f.fails()
	time.Sleep(f.trip / 2)
	for i := range asks {
		a := &asks[i]
		if a.Err = errLoading; fails {
			continue
		}
		a.Granted, a.Err = f.Store.Take(context.Background(), a.Checks, a.Copies)
		if a.Err == nil && a.Granted.OK && a.Granted.Granted < int64(a.Copies) {
			a.Rest, a.Err = f.Store.Take(context.Background(), a.Checks, 1)
		}
	}
	time.Sleep(f.trip - f.trip/2)
	return nil
}

var errLoading = errors.New("LOADING Redis is loading the dataset in memory")

func (f *flaky) Post(ctx context.Context, p chain.Post) error {
	time.Sleep(f.trip / 2)
	err := f.Store.Adjust(ctx, tidegate.Receipt{}, []tidegate.Check{p.Check})
	time.Sleep(f.trip - f.trip/2)
	return err
}

var countable = []tidegate.Algorithm{
	tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota,
}

func countedBy(a tidegate.Algorithm, events int64, period time.Duration) *tidegate.Limit {
	spec := tidegate.Spec{Name: "l", Algorithm: a, Events: events, Period: period}
	switch a {
	case tidegate.LeakyBucket:
		spec.Burst = events
	case tidegate.Quota:
		spec.Period, spec.Calendar = 0, tidegate.Day
	}
	return tidegate.MustLimit(spec)
}

// What was admitted because a single call failed is charged before the next call of the same
// key is decided, whichever of the calls fail. It stayed uncharged for up to 15 ms, in which one
// more was admitted.
func TestSingleFailuresAreChargedAtOnce(t *testing.T) {
	for _, a := range countable {
		for failing := range 1 << 5 { // a bit for each call
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour) // not at the edge of a day
				calls := 0
				f := &flaky{Store: memory.New(), trip: time.Duration(failing%3) * time.Millisecond, fails: func() bool {
					calls++
					return failing>>(calls-1)&1 == 1
				}}
				l := countedBy(a, 5, 400*time.Hour)
				n, admitted := newNode(f, Options{Failures: 1000, Remember: 64}), 0
				for range 10 {
					admitted += spend(t, n, l, "k", 1)
					time.Sleep(f.trip + time.Millisecond)
				}
				if admitted != int(l.Capacity()) {
					t.Errorf("%s, %s away, failing calls %05b: %d admitted", l, f.trip, failing, admitted)
				}
				_ = n.Close()
			})
		}
	}
}

// flakyFleet is nodes that are asked for one key at random, while single calls fail.
type flakyFleet struct {
	limit   *tidegate.Limit
	nodes   int
	trip    time.Duration
	part    float64 // of the calls fail
	offered int     // a second
	lasts   time.Duration
}

// run returns when requests were admitted, by the counters' clocks, and which of them by fallbacks.
func (f flakyFleet) run(t *testing.T, seed uint64) (all, local []time.Duration) {
	var (
		mu      sync.Mutex
		fate    = rand.New(rand.NewPCG(seed, 1)) // under mu
		load    = rand.New(rand.NewPCG(seed, 2))
		backend = &flaky{Store: memory.New(), trip: f.trip, fails: func() bool {
			mu.Lock()
			defer mu.Unlock()
			return fate.Float64() < f.part
		}}
		nodes []*Node
		asked sync.WaitGroup
		start = time.Now()
	)
	for range f.nodes {
		nodes = append(nodes, newNode(backend, Options{Failures: 1 << 20, Remember: 64, Instances: func() int { return f.nodes }}))
	}
	for time.Since(start) < f.lasts {
		n := nodes[load.IntN(f.nodes)]
		asked.Go(func() {
			d, err := n.Take(context.Background(), []tidegate.Check{{Key: "k", Limit: f.limit, Cost: 1, MaxWait: longest(f.limit)}}, 1)
			if err != nil {
				t.Error(err)
			}
			if !d.OK {
				return
			}
			at := time.UnixMicro(d.Receipt.At / 1024).Sub(start)
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, at); byFallback(&d) {
				local = append(local, at)
			}
		})
		time.Sleep(time.Duration(load.ExpFloat64() * float64(time.Second) / float64(f.offered)))
	}
	asked.Wait()
	time.Sleep(time.Second)
	for _, n := range nodes {
		if h := n.Health(); h.State != OK || h.Backlog != 0 || h.Lost != 0 {
			t.Errorf("%+v", h)
		}
		_ = n.Close()
	}
	slices.Sort(all)
	slices.Sort(local)
	return all, local
}

// most is how many of times are within a stretch of this length, at most.
func most(times []time.Duration, length time.Duration) (n int) {
	first := 0
	for i, now := range times {
		for times[first] <= now-length {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// above is by how many events l was exceeded by admissions at these times, at most.
func above(l *tidegate.Limit, times []time.Duration) int {
	capacity := int(l.Capacity())
	switch l.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		level, highest, last := 0.0, 0.0, time.Duration(0)
		for _, now := range times {
			level, last = max(0, level-float64(l.Events)*float64(now-last)/float64(l.Period))+1, now
			highest = max(highest, level)
		}
		return int(highest-0.01) + 1 - capacity
	case tidegate.SlidingLog:
		return most(times, l.Period) - capacity
	case tidegate.SubWindows: // forgets a part at a time
		return most(times, l.Period-l.Period/time.Duration(l.Parts)) - capacity
	case tidegate.Quota:
		return len(times) - capacity
	}
	windows, fullest := map[time.Duration]int{}, 0
	for _, now := range times {
		windows[now/l.Period]++
		fullest = max(fullest, windows[now/l.Period])
	}
	return fullest - capacity
}

// While single calls fail, a key is above its limit by no more than fallbacks have admitted in
// some round trips: what they admit is charged at once.
func TestSingleFailuresOfAFleet(t *testing.T) {
	for i, a := range countable {
		for _, large := range []bool{false, true} {
			for seed := range testdep.Longer(uint64(2), 100) {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				f := flakyFleet{
					nodes: 1 + 2*r.IntN(2), trip: time.Duration(r.IntN(25)) * time.Millisecond, part: []float64{0.01, 0.05, 0.2}[r.IntN(3)],
					offered: 50, lasts: 20 * time.Second,
				}
				if f.limit = countedBy(a, 5, 2*time.Second); large {
					f.limit, f.offered, f.lasts = countedBy(a, 1000, time.Second), 3000, 2*time.Second
				}
				synctest.Test(t, func(t *testing.T) {
					all, local := f.run(t, seed)
					over, bound := above(f.limit, all), most(local, 4*f.trip+5*time.Millisecond)
					what := fmt.Sprintf("%s, %d nodes %s away, %g %% fail, seed %d", f.limit, f.nodes, f.trip, 100*f.part, seed)
					t.Logf("%s: %d admitted, %d by fallbacks, %d of these together; above by %d", what, len(all), len(local), bound, over)
					if over > bound {
						t.Errorf("%s: above by %d, and fallbacks have admitted %d together", what, over, bound)
					}
				})
			}
		}
	}
}
