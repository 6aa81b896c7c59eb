package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// Calls that do not return are bounded: beyond, the answer comes at once. They are
// gone when the store lets them go, and nothing is left of them.
func TestCallsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: deaf}
		g := newNode(way, Options{InFlight: 3, Failures: 1000})
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				began := time.Now()
				d, err := g.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: perSecond, Cost: 1}}, 1)
				if err != nil || !d.OK || !byFallback(&d) {
					t.Errorf("%+v, %v", d, err)
				}
				want := time.Duration(0)
				if i < 3 {
					want = DefaultDeadline
				}
				if took := time.Since(began); took > want || took < want*63/64 {
					t.Errorf("answer %d took %s, want %s", i, took, want)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if h := g.Health(); h.InFlight != 3 || h.Busy < 7 || h.Timeouts != 3 || way.asked() != 3 {
			t.Errorf("%+v after %d calls", h, way.asked())
		}
		way.set(none)
		synctest.Wait()
		if h := g.Health(); h.InFlight != 0 {
			t.Errorf("%+v", h)
		}
		if d, err := g.Take(t.Context(), []tidegate.Check{one(perSecond)}, 1); err != nil || byFallback(&d) {
			t.Errorf("%+v, %v: want an answer of the inner store", d, err)
		}
		_ = g.Close()
		wantNoGoroutine(t)
	})
}

// Every call answers in time, whatever the store does; only Take and Reserve have a fallback.
func TestEveryCallHasADeadline(t *testing.T) {
	for name, is := range faults {
		synctest.Test(t, func(t *testing.T) {
			way := &faulty{}
			g := newNode(way, Options{})
			calls := map[string]func() error{
				"Adjust": func() error { return g.Adjust(t.Context(), tidegate.Receipt{At: 1}, []tidegate.Check{one(perSecond)}) },
				"Renew":  func() error { return g.Renew(t.Context(), tidegate.Receipt{At: 1}, nil) },
				"Reset":  func() error { return g.Reset(t.Context(), []tidegate.Check{one(perSecond)}) },
				"Settle": func() error { return g.Settle(t.Context(), tidegate.Receipt{Handle: tidegate.NewHandle()}, 1) },
				"Reserve": func() error {
					d, err := g.Reserve(t.Context(), []tidegate.Check{one(perSecond)}, time.Hour)
					if err != nil || !d.OK {
						t.Errorf("Reserve = %+v, %v", d, err)
					}
					return errors.New("has a fallback")
				},
				"Take": func() error {
					d, err := g.Take(t.Context(), []tidegate.Check{one(perSecond)}, 1)
					if err != nil || !d.OK {
						t.Errorf("Take = %+v, %v", d, err)
					}
					return errors.New("has a fallback")
				},
			}
			way.set(is)
			for n, call := range calls {
				most := 1
				if n == "Reserve" { // what was admitted before is posted
					most = 2
				}
				for range 5 {
					began := time.Now()
					before := way.asked()
					if err := call(); err == nil {
						t.Errorf("%s on a store that is %s: no error", n, name)
					}
					if took := time.Since(began); took > DefaultDeadline || way.asked()-before > most {
						t.Errorf("%s on a store that is %s took %s and %d calls", n, name, took, way.asked()-before)
					}
				}
			}
			if h := g.Health(); h.State != Degraded {
				t.Errorf("%+v", h)
			}
			_ = g.Close()
			way.set(none)
			time.Sleep(time.Second)
		})
	}
}

// observer looks at what a store is given.
type observer struct {
	tidegate.Store
	look func(ctx context.Context, checks []tidegate.Check)
}

func (o observer) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	o.look(ctx, checks)
	return o.Store.Take(ctx, checks, n)
}

// The backend sees neither the caller's values nor the caller leave: its answer may be
// shared with others. Its context outlives the deadline, since a late reply settles what
// was decided meanwhile.
func TestContextOfTheBackend(t *testing.T) {
	type name struct{}
	synctest.Test(t, func(t *testing.T) {
		const most = DefaultDeadline + lateFor
		var looked, valued atomic.Int64
		g := newNode(observer{memory.New(), func(ctx context.Context, _ []tidegate.Check) {
			looked.Add(1)
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > most || time.Until(deadline) < most-DefaultDeadline/8 {
				t.Errorf("deadline in %s, %t", time.Until(deadline), ok)
			}
			if ctx.Value(name{}) == "value" {
				valued.Add(1)
			}
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			time.Sleep(most - 5*time.Millisecond)
			if ctx.Err() != nil || child.Err() != nil {
				t.Errorf("ended: %v", ctx.Err())
			}
			time.Sleep(5 * time.Millisecond)
			<-child.Done()
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("ended: %v", ctx.Err())
			}
		}}, Options{})
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), name{}, "value"))
		time.AfterFunc(5*time.Millisecond, leave)
		_, _ = g.Take(ctx, []tidegate.Check{one(perSecond)}, 1)
		_, _ = g.Take(context.Background(), []tidegate.Check{one(perSecond)}, 1)
		time.Sleep(2 * most)
		if looked.Load() != 2 || valued.Load() != 0 {
			t.Errorf("asked %d times, %d with a value", looked.Load(), valued.Load())
		}
		_ = g.Close()
	})
}

// A call that is left behind has keys of its own: the caller's memory is the caller's
// again as soon as there is an answer. The race detector sees if it is not.
func TestKeysOfCallsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var request tidegate.Request
		var seen []string
		g := newNode(observer{memory.New(), func(_ context.Context, checks []tidegate.Check) {
			time.Sleep(time.Second)
			for _, c := range checks {
				seen = append(seen, strings.Clone(c.Key))
			}
		}}, Options{})
		checks := []tidegate.Check{{Key: request.Key("first"), Limit: perSecond, Cost: 1}, {Key: request.Key("second"), Limit: perSecond, Cost: 1}}
		if d, err := g.Take(t.Context(), checks, 1); err != nil || !d.OK {
			t.Errorf("%+v, %v", d, err)
		}
		request.Reset()
		_ = request.Key("somebody else's")
		clear(checks)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []string{tidegate.Key("first"), tidegate.Key("second")}; strings.Join(seen, "|") != strings.Join(want, "|") {
			t.Errorf("keys %q, want %q", seen, want)
		}
		_ = g.Close()
	})
}
