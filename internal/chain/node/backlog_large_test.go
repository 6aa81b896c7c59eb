package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// outlying is a distant shared counter that can be out of reach.
type outlying struct {
	distant
	mu   sync.Mutex
	away bool
}

func (o *outlying) set(away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away = away
}

func (o *outlying) reachable() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away {
		return errBroken
	}
	return nil
}

func (o *outlying) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	if err := o.reachable(); err != nil {
		return err
	}
	return o.distant.TakeBatch(ctx, asks)
}

func (o *outlying) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if err := o.reachable(); err != nil {
		return tidegate.Decision{}, err
	}
	time.Sleep(o.trip())
	return o.distant.Store.Take(ctx, checks, n)
}

func (o *outlying) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if err := o.reachable(); err != nil {
		return err
	}
	trip := o.trip()
	time.Sleep(trip / 2)
	defer time.Sleep(trip - trip/2)
	return o.distant.Store.Adjust(ctx, r, checks)
}

// Many users use their limits up in an outage, at all of three nodes; when the shared
// counter is back they ask again at once. In all they get what the limit says.
func TestLargeBacklog(t *testing.T) {
	const events, nodes = 12, 3
	for _, algorithm := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.TokenBucket, tidegate.FixedWindow} {
		for _, users := range []int{100, 1000, 8000, 20000} {
			for _, ms := range []int{1, 10} {
				if testdep.RaceEnabled && (users > 1000 || users > 100 && ms > 1) || users > 8000 && algorithm != tidegate.SlidingLog {
					continue // they take their time, and show no more
				}
				synctest.Test(t, func(t *testing.T) {
					l := tidegate.MustLimit(tidegate.Spec{Name: "hour", Events: events, Period: time.Hour, Algorithm: algorithm})
					shared, trip := memory.New(), time.Duration(ms)*time.Millisecond
					var backends []*outlying
					var all []*Node
					for range nodes {
						backend := &outlying{distant: distant{shared, func() time.Duration { return trip }, 32}}
						backends = append(backends, backend)
						all = append(all, newNode(backend, Options{Instances: func() int { return nodes }}))
					}
					time.Sleep(10 * time.Minute) // not at the edge of an hour
					for i, n := range all {
						backends[i].set(true)
						for range DefaultFailures {
							_, _ = n.Take(t.Context(), []tidegate.Check{{Key: "first", Limit: l, Cost: 1}}, 1)
						}
					}
					admitted := 0
					for u := range users {
						for i := range events {
							if d, _ := all[i%nodes].Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(u), Limit: l, Cost: 1}}, 1); d.OK {
								admitted++
							}
						}
					}
					during := admitted
					for _, backend := range backends {
						backend.set(false)
					}
					// Each user asks once in a quarter of a second, somewhere.
					var asked sync.WaitGroup
					var mu sync.Mutex
					for u := range users {
						asked.Go(func() {
							time.Sleep(250 * time.Millisecond * time.Duration(u) / time.Duration(users))
							for i := range 12 {
								if d, _ := all[(u+i)%nodes].Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(u), Limit: l, Cost: 1}}, 1); d.OK {
									mu.Lock()
									admitted++
									mu.Unlock()
								}
								time.Sleep(250 * time.Millisecond)
							}
						})
					}
					asked.Wait()
					due := users * events
					t.Logf("%s, %d users, round trip %d ms: %d admitted during the outage and %d after it, %d are due: %+.1f %%",
						algorithm, users, ms, during, admitted-during, due, 100*float64(admitted-due)/float64(due))
					if admitted > due+due/20 || admitted < due-due/20 {
						t.Errorf("%s, %d users, round trip %d ms: %d admitted, want %d ± 5 %%", algorithm, users, ms, admitted, due)
					}
					for i, n := range all {
						if h := n.Health(); h.Backlog != 0 || h.State != OK {
							t.Errorf("node %d: %+v", i, h)
						}
						_ = n.Close()
					}
					time.Sleep(2 * time.Second)
				})
			}
		}
	}
}
