package node

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// Twenty slots, and a store whose replies come too late for a while: what it granted to
// callers that had given up is free again as soon as it answers, not when leases run out.
func TestSlotsUnderLateReplies(t *testing.T) {
	for _, mode := range []tidegate.FailMode{tidegate.FailOpen, tidegate.FailClosed, tidegate.FailLocal} {
		for _, slowness := range []time.Duration{30 * time.Millisecond, 150 * time.Millisecond, 800 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				slots := tidegate.MustLimit(tidegate.Spec{
					Name: "slots", Events: 20, Period: 30 * time.Second, Algorithm: tidegate.Concurrency, Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: mode}},
				})
				var trip atomic.Int64
				trip.Store(int64(time.Millisecond))
				shared := memory.New()
				n := newNode(&outlying{distant: distant{shared, func() time.Duration { return time.Duration(trip.Load()) }, 32}}, Options{})
				lim := tidegate.New(n, slots)
				visit := func() bool {
					slot := lim.Acquire(context.Background(), "all")
					if slot.OK {
						time.Sleep(5 * time.Millisecond)
						_ = slot.Cancel()
					}
					return slot.OK
				}
				trip.Store(int64(slowness))
				for range 40 {
					go visit()
					time.Sleep(5 * time.Millisecond)
				}
				trip.Store(int64(time.Millisecond))
				time.Sleep(3 * time.Second) // it recovers
				if h := n.Health(); h.State != OK {
					t.Fatalf("%+v", h)
				}
				d, err := shared.Take(t.Context(), []tidegate.Check{{Key: "all", Limit: slots}}, 1)
				if err != nil || d.Remaining != 20 {
					t.Errorf("%d ms, mode %d: %d of 20 slots are free after three seconds", slowness.Milliseconds(), mode, d.Remaining)
				}
				for i := range 100 {
					if !visit() {
						t.Errorf("%d ms, mode %d: request %d is refused", slowness.Milliseconds(), mode, i)
					}
				}
				_ = n.Close()
				time.Sleep(2 * time.Second)
			})
		}
	}
}

// Slots that are given back while the store is away are given back when it is there.
func TestReleasesInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 5, Period: time.Minute, Algorithm: tidegate.Concurrency})
		way := &faulty{}
		n := newNode(way, Options{})
		lim := tidegate.New(n, slots)
		var held []*tidegate.Reservation
		for range 5 {
			held = append(held, lim.Acquire(t.Context(), "all"))
		}
		way.set(broken)
		spend(t, n, perSecond, "k", DefaultFailures)
		for _, slot := range held {
			_ = slot.Cancel()
		}
		way.set(none)
		time.Sleep(5 * time.Second)
		if d := lim.Peek(t.Context(), "all"); d.Remaining != 5 || byFallback(&d) {
			t.Errorf("%+v, want 5 slots free", d)
		}
		_ = n.Close()
	})
}

// A slot that the store refuses to take back is tried again, less and less often, and is in
// nobody's way.
func TestReleaseThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &stubborn{slotBackend: slotBackend{Backend: chain.Adapt(&faulty{}), server: newSlotServer(), rand: rand.New(rand.NewPCG(1, 1)), trip: time.Millisecond}}
		n := New(backend, Options{})
		slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 20, Period: time.Minute, Algorithm: tidegate.Concurrency})
		lim := tidegate.New(n, slots)
		bad, good := lim.Acquire(t.Context(), "bad"), lim.Acquire(t.Context(), "good")
		_ = bad.Cancel()
		time.Sleep(20 * time.Second)
		if err := good.Cancel(); err != nil {
			t.Error(err)
		}
		late := tidegate.NewHandle()
		n.releaseEach(tidegate.Receipt{Handle: late}, []tidegate.Check{{Key: "good", Limit: slots, Cost: 1}})
		time.Sleep(10 * time.Millisecond)
		backend.server.mu.Lock()
		if backend.server.marks[late].IsZero() {
			t.Error("a release waits for one that is refused")
		}
		backend.server.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if calls := backend.refused.Load(); calls < 5 || calls > 40 {
			t.Errorf("it was tried %d times in a minute", calls)
		}
		wantNoGoroutine(t)
		_ = n.Close()
	})
}

// stubborn does not take back what is under the key "bad".
type stubborn struct {
	slotBackend
	refused atomic.Int64
}

func (s *stubborn) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if checks[0].Key == "bad" {
		s.refused.Add(1)
		return tidegate.ErrCannotAsk
	}
	return s.slotBackend.Adjust(ctx, r, checks)
}
