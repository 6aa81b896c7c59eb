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
)

// A caller with a shorter deadline than the node's gets the answer of the fallback by then,
// again and again, whatever is the matter with the store; and what has no reply opens the
// circuit as ever.
func TestAnswerByBeforeTheDeadline(t *testing.T) {
	const by = 15 * time.Millisecond
	for i := range 6 {
		is := []fault{frozen, deaf, slowed}[i%3]
		synctest.Test(t, func(t *testing.T) {
			var alarms *chain.Alarms
			if i >= 3 {
				alarms = new(chain.Alarms)
			}
			way := &faulty{fault: is}
			g := newNode(way, Options{Deadline: 100 * time.Millisecond})
			for round := range 40 {
				began := time.Now()
				ctx := chain.NewAnswerBy(t.Context(), began.Add(by), alarms)
				var all sync.WaitGroup
				for i := range 3 {
					all.Go(func() {
						for range 2 { // the second one has no time left, if the first had none
							d, err := g.Take(ctx, []tidegate.Check{{Key: fmt.Sprint(round, i), Limit: perSecond, Cost: 1}}, 1)
							if err != nil || !d.OK || !byFallback(&d) {
								t.Errorf("%d: %+v, %v", is, d, err)
							}
						}
					})
				}
				all.Wait()
				if took := time.Since(began); took > by {
					t.Fatalf("%d: round %d took %s", is, round, took)
				}
				ctx.Stop()
			}
			time.Sleep(100 * time.Millisecond)
			if h := g.Health(); h.State == OK {
				t.Errorf("%d: the circuit is still closed: %+v", is, h)
			}
			way.set(none)
			_ = g.Close()
			time.Sleep(2 * time.Second)
			synctest.Wait()
		})
	}
}

// A store that is slower than such callers wait, and in time for others, is not given up: its
// replies settle what was decided without them.
func TestAnswerByIsNoFailureOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var alarms chain.Alarms
		way := &faulty{fault: slowed} // 200 ms
		g := newNode(way, Options{Deadline: time.Second})
		limit := tidegate.MustLimit(tidegate.Spec{Name: "day", Events: 1000, Period: 24 * time.Hour, Algorithm: tidegate.FixedWindow})
		const calls = 50
		for range calls {
			ctx := chain.NewAnswerBy(t.Context(), time.Now().Add(15*time.Millisecond), &alarms)
			d, err := g.Take(ctx, []tidegate.Check{{Key: "k", Limit: limit, Cost: 1}}, 1)
			if err != nil || !d.OK || !byFallback(&d) {
				t.Fatalf("%+v, %v", d, err)
			}
			ctx.Stop()
			time.Sleep(50 * time.Millisecond)
		}
		if h := g.Health(); h.State != OK {
			t.Errorf("the circuit is open: %+v", h)
		}
		time.Sleep(10 * time.Second) // until all is settled
		way.set(none)
		d, err := g.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: limit}}, 1)
		if err != nil || d.Remaining != 1000-calls {
			t.Errorf("%d remain of 1000 after %d, %v", d.Remaining, calls, err)
		}
		_ = g.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
	})
}

// A caller that leaves is told so, by its context or by that of the server.
func TestAnswerByLeaves(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var alarms *chain.Alarms
			if shared {
				alarms = new(chain.Alarms)
			}
			way := &faulty{fault: deaf}
			g := newNode(way, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			by := chain.NewAnswerBy(ctx, time.Now().Add(time.Minute), alarms)
			defer by.Stop()
			time.AfterFunc(5*time.Millisecond, cancel)
			if d, err := g.Take(by, []tidegate.Check{one(perSecond)}, 1); err != context.Canceled {
				t.Errorf("%+v, %v", d, err)
			}
			way.set(none)
			_ = g.Close()
			synctest.Wait()
		})
	}
}
