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
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// looping decides as Redis does: it reads all that has come, decides about one after the
// other, and only then replies to all of them.
type looping struct {
	*memory.Store
	decides time.Duration // about one ask
	most    int
	came    chan *looped
	turns   int // it stops after so many; 0 means that it does not
}

type looped struct {
	asks []chain.Ask
	done chan struct{}
}

func (l *looping) serve(t *testing.T) {
	for turns := 1; ; turns++ {
		one, ok := <-l.came
		if !ok || turns == l.turns {
			return
		}
		turn := []*looped{one}
		for len(l.came) > 0 {
			turn = append(turn, <-l.came)
		}
		for _, c := range turn {
			for i := range c.asks {
				a := &c.asks[i]
				time.Sleep(l.decides)
				a.Granted, a.Err = l.Store.Take(t.Context(), a.Checks, a.Copies)
			}
		}
		for _, c := range turn {
			close(c.done)
		}
	}
}

func (l *looping) MaxBatch() int { return l.most }

func (l *looping) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	c := &looped{asks, make(chan struct{})}
	l.came <- c
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A server that is busy with a burst says nothing for as long as that takes. Three nodes do
// not send it so much at once that it could be taken for silent: all who have used up their
// limits are refused, whether this node has seen them before or not.
func TestBurstDoesNotSilenceTheServer(t *testing.T) {
	f := func(decides time.Duration, burst, checks, most int) {
		t.Run(fmt.Sprintf("%s %d callers of %d limits in batches of %d", decides, burst, checks, most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &looping{Store: memory.New(), decides: decides, most: most, came: make(chan *looped, 1<<16)}
				go store.serve(t)
				defer close(store.came)
				l, all := limit("each", 10, tidegate.FailLocal), limit("all", 1<<20, tidegate.FailLocal)
				vector := func(key string) []tidegate.Check {
					return []tidegate.Check{{Key: key, Limit: l, Cost: 1}, {Key: "everyone", Limit: all, Cost: 1}}[:checks]
				}
				var nodes []*Node
				for range 3 {
					nodes = append(nodes, newNode(store, Options{Instances: func() int { return 3 }}))
				}
				for i := range burst {
					check := tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 10}
					if d, _ := store.Store.Take(t.Context(), []tidegate.Check{check}, 1); !d.OK {
						t.Fatalf("%+v", d)
					}
				}
				var wrong atomic.Int64
				for range 3 { // the first time nothing is known, not even how long it takes
					var callers sync.WaitGroup
					for _, g := range nodes {
						for i := range burst {
							callers.Go(func() {
								d, err := g.Take(t.Context(), vector(fmt.Sprint(i)), 1)
								if err != nil || d.OK || byFallback(&d) {
									wrong.Add(1)
								}
							})
						}
					}
					callers.Wait()
					if n := wrong.Swap(0); n > 0 {
						t.Errorf("%d of %d were not refused by the server", n, len(nodes)*burst)
					}
					time.Sleep(2 * maxDenial)
				}
				for _, g := range nodes {
					if h := g.Health(); h.State != OK || h.Timeouts != 0 {
						t.Errorf("%+v", h)
					}
					_ = g.Close()
				}
				time.Sleep(2 * lateFor)
			})
		})
	}
	for _, burst := range []int{100, 200, 500} {
		if testdep.RaceEnabled && burst > 200 {
			continue // it takes its time
		}
		f(60*time.Microsecond, burst, 2, 32)
		f(100*time.Microsecond, burst, 2, 1)
		f(20*time.Microsecond, burst, 1, 32)
	}
	if !testdep.RaceEnabled {
		f(10*time.Microsecond, 3000, 1, 32)
	}
}

// A server that stops in the middle of a burst is waited for until it has been silent for a
// while, and not for as long as a queue may take.
func TestQueueEndsWithSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &looping{Store: memory.New(), decides: 100 * time.Microsecond, most: 1, came: make(chan *looped, 1<<16), turns: 3}
		go store.serve(t)
		g := newNode(store, Options{Failures: 1 << 30})
		l := limit("silent", 1_000_000, tidegate.FailLocal)
		var callers sync.WaitGroup
		var local atomic.Int64
		start := time.Now()
		for i := range 300 {
			callers.Go(func() {
				d, err := g.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1}}, 1)
				if took := time.Since(start); err != nil || took > (heardDeadlines+1)*DefaultDeadline {
					t.Errorf("%+v, %v after %s", d, err, took)
				}
				if byFallback(&d) {
					local.Add(1)
				}
			})
		}
		callers.Wait()
		if local.Load() == 0 {
			t.Error("the server has answered everybody")
		}
		began := time.Now()
		for i := range 100 {
			callers.Go(func() {
				d, err := g.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint("later ", i), Limit: l, Cost: 1}}, 1)
				if took := time.Since(began); err != nil || !byFallback(&d) || took > DefaultDeadline {
					t.Errorf("%+v, %v after %s", d, err, took)
				}
			})
		}
		callers.Wait()
		_ = g.Close()
		time.Sleep(2 * lateFor)
	})
}

// slowReserve reserves one after the other.
type slowReserve struct {
	*memory.Store
	turn chan struct{}
}

func (s *slowReserve) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	time.Sleep(200 * time.Microsecond)
	return s.Store.Reserve(ctx, checks, ttl)
}

// Reservations are queued like other requests.
func TestReservationsAreQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowReserve{memory.New(), make(chan struct{}, 1)}
		g := newNode(store, Options{})
		l := limit("reserved", 10, tidegate.FailLocal)
		var callers sync.WaitGroup
		for i := range 400 {
			check := []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 10}}
			if d, _ := store.Store.Take(t.Context(), check, 1); !d.OK {
				t.Fatalf("%+v", d)
			}
			callers.Go(func() {
				check := []tidegate.Check{{Key: fmt.Sprint(i), Limit: l, Cost: 1, Estimate: true}}
				if d, err := g.Reserve(t.Context(), check, time.Minute); err != nil || d.OK || byFallback(&d) {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		callers.Wait()
		if h := g.Health(); h.State != OK || h.Timeouts != 0 {
			t.Errorf("%+v", h)
		}
		_ = g.Close()
	})
}
