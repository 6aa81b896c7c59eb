package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// What is taken ahead comes from the backend or from nobody, whatever is the matter with it,
// and within the deadline.
func TestTakeAhead(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(faulty)
				g := newNode(store, Options{})
				defer func() { // calls that are out end
					store.set(none)
					_ = g.Close()
					time.Sleep(time.Second)
				}()
				l := limit("api", 100, tidegate.FailLocal)
				checks := []tidegate.Check{one(l)}
				granted, rest, err := g.TakeAhead(t.Context(), checks, 70, time.Second)
				if err != nil || granted.Granted != 70 || granted.Receipt.Origin != tidegate.OriginStore || rest.Limit != nil {
					t.Fatalf("%+v, %+v, %v", granted, rest, err)
				}
				granted, rest, err = g.TakeAhead(t.Context(), checks, 70, time.Second)
				if err != nil || granted.Granted != 30 {
					t.Fatalf("%+v, %+v, %v", granted, rest, err)
				}
				granted, rest, err = g.TakeAhead(t.Context(), checks, 70, time.Second)
				if err != nil || granted.OK || rest.OK || rest.RetryAfter <= 0 || rest.Limit != l {
					t.Fatalf("%+v, %+v, %v", granted, rest, err)
				}
				store.set(fault)
				checks[0].Key = "another"
				for range 20 {
					began := time.Now()
					granted, _, err = g.TakeAhead(t.Context(), checks, 70, time.Second)
					if took := time.Since(began); err == nil || granted.OK || took > DefaultDeadline {
						t.Fatalf("%+v, %v after %s", granted, err, took)
					}
				}
				if h := g.Health(); h.State != Degraded || h.Admitted+h.Refused != 0 {
					t.Errorf("%+v", h)
				}
				if _, _, err := g.TakeAhead(t.Context(), checks, 70, time.Second); !errors.Is(err, ErrOpen) {
					t.Errorf("while the circuit is open: %v", err)
				}
			})
		})
	}
}

// halfStuck is a backend that never decides about some keys, and soon about the others.
type halfStuck struct{ *memory.Store }

func (s halfStuck) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if strings.HasPrefix(checks[0].Key, "stuck") {
		<-ctx.Done()
		return tidegate.Decision{}, ctx.Err()
	}
	time.Sleep(time.Millisecond)
	return s.Store.Take(ctx, checks, n)
}

func (s halfStuck) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	return s.Take(ctx, checks, 1)
}

// Calls that were given up are no queue: whoever comes next waits no longer because of them,
// although the server answers others meanwhile.
func TestNobodyQueuesBehindCallsGivenUp(t *testing.T) {
	l := limit("api", 1_000_000, tidegate.FailLocal)
	check := func(name string, i int) []tidegate.Check {
		return []tidegate.Check{{Key: fmt.Sprint(name, i), Limit: l, Cost: 1, Estimate: true}}
	}
	for name, call := range map[string]func(ctx context.Context, g *Node, i int){
		"ahead": func(ctx context.Context, g *Node, i int) {
			_, _, _ = g.TakeAhead(ctx, check("stuck", i), 8, time.Second)
		},
		"reserve": func(ctx context.Context, g *Node, i int) { _, _ = g.Reserve(ctx, check("stuck", i), time.Minute) },
		"left": func(ctx context.Context, g *Node, i int) {
			ctx, cancel := context.WithTimeout(ctx, DefaultDeadline/5)
			defer cancel()
			_, _, _ = g.TakeAhead(ctx, check("stuck", i), 8, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newNode(halfStuck{memory.New()}, Options{Failures: 1 << 30})
				var all sync.WaitGroup
				for i := range 100 { // how long a call takes is known
					_, _ = g.Take(t.Context(), check("quick", i), 1)
				}
				for i := range 2 * minQueue {
					all.Go(func() { call(t.Context(), g, i) })
				}
				all.Wait()
				time.Sleep(6 * DefaultDeadline)
				if out, over := g.server(0).inFlight.Load(), g.server(0).overdue.Load(); out < minQueue || over != out {
					t.Fatalf("%d calls are in flight and %d of them overdue", out, over)
				}
				began := time.Now()
				all.Go(func() {
					d, err := g.Take(t.Context(), check("stuck, too", 0), 1)
					if took := time.Since(began); err != nil || !byFallback(&d) || took > DefaultDeadline {
						t.Errorf("%+v, %v after %s", d, err, took)
					}
				})
				for i := range 20 {
					_, _ = g.Take(t.Context(), check("quick", i), 1)
				}
				all.Wait()
				_ = g.Close()
				time.Sleep(2 * lateFor)
				if out, over := g.server(0).inFlight.Load(), g.server(0).overdue.Load(); out != 0 || over != 0 {
					t.Errorf("%d calls are in flight and %d overdue at the end", out, over)
				}
			})
		})
	}
}
