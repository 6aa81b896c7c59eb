package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// serial is a store that decides one after the other, as a server with one thread does, at
// a distance.
type serial struct {
	*memory.Store
	turn     chan struct{} // full while one is decided; a Mutex would stop virtual time
	decides  time.Duration // takes so long
	distance atomic.Int64  // there and back, in ns
}

func (s *serial) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	far := time.Duration(s.distance.Load())
	time.Sleep(far / 2)
	s.turn <- struct{}{}
	time.Sleep(s.decides)
	d, err := s.Store.Take(ctx, checks, n)
	<-s.turn
	time.Sleep(far - far/2)
	return d, err
}

// A burst waits in a queue, and that is no fault of the server: all are decided by it,
// whatever is known of them here, and the circuit stays closed.
func TestBurstWaitsInAQueue(t *testing.T) {
	for _, decides := range []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		for _, burst := range []int{50, 200, 400} {
			t.Run(fmt.Sprint(decides, " ", burst), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &serial{Store: memory.New(), turn: make(chan struct{}, 1), decides: decides}
					store.distance.Store(int64(time.Millisecond))
					g := newNode(store, Options{Instances: func() int { return 3 }})
					defer g.Close()
					l := limit("burst", 10, tidegate.FailLocal)
					for i := range burst {
						check := tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 10}
						if d, _ := store.Store.Take(t.Context(), []tidegate.Check{check}, 1); !d.OK {
							t.Fatalf("%+v", d)
						}
					}
					for range 3 { // the first time nothing is known, not even how long it takes
						var all sync.WaitGroup
						for i := range burst {
							all.Go(func() {
								d, err := g.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1}}, 1)
								if err != nil || d.OK || byFallback(&d) {
									t.Errorf("%+v, %v", d, err)
								}
							})
						}
						all.Wait()
						time.Sleep(2 * maxDenial)
					}
					if h := g.Health(); h.State != OK || h.Timeouts != 0 {
						t.Errorf("%+v", h)
					}
				})
			})
		}
	}
}

// A server that is far away, or has grown slow, is not waited for: it is not the line that
// takes so long.
func TestFarIsNotInLine(t *testing.T) {
	testdep.SkipUnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		store := &serial{Store: memory.New(), turn: make(chan struct{}, 1)}
		store.distance.Store(int64(time.Millisecond))
		g := newNode(store, Options{Failures: 1 << 30, DenyEntries: -1})
		defer g.Close()
		l := limit("far", 1_000_000, tidegate.FailLocal)
		slowest := func(d time.Duration) (slowest time.Duration) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for i, until := 0, time.Now().Add(d); time.Now().Before(until); i++ {
				all.Go(func() {
					start := time.Now()
					_, _ = g.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1}}, 1)
					mu.Lock()
					defer mu.Unlock()
					slowest = max(slowest, time.Since(start))
				})
				time.Sleep(time.Millisecond)
			}
			all.Wait()
			return slowest
		}
		if got := slowest(3 * time.Second); got > 2*time.Millisecond {
			t.Errorf("it takes %s", got)
		}
		store.distance.Store(int64(40 * time.Millisecond))
		slowest(3 * leastSpan) // it may be the line
		if got := slowest(5 * time.Second); got > DefaultDeadline {
			t.Errorf("it takes %s to answer for a server that takes 40ms", got)
		}
		store.distance.Store(int64(time.Millisecond))
		slowest(time.Second)
		if got := slowest(3 * time.Second); got > 2*time.Millisecond {
			t.Errorf("it takes %s", got)
		}
	})
}

// A caller that is late because this process is does not blame the server, and one whose
// server says nothing is back at the deadline.
func TestSilenceIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{}
		g := newNode(way, Options{Failures: 1 << 30})
		defer g.Close()
		l := limit("silent", 1_000_000, tidegate.FailLocal)
		take := func(key string) (tidegate.Decision, time.Duration) {
			start := time.Now()
			d, err := g.Take(t.Context(), []tidegate.Check{{Key: key, Limit: l, Cost: 1}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return d, time.Since(start)
		}
		take("before")
		way.set(frozen)
		for i := range 100 {
			if d, took := take(fmt.Sprint(i)); !byFallback(&d) || took > DefaultDeadline {
				t.Errorf("%+v after %s", d, took)
			}
		}
		way.set(none)
		time.Sleep(2 * lateFor)
	})
}
