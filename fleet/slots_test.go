package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Redis is slow for a moment, answers get lost and clients leave, under requests that hold
// five of twenty slots: once that is over all twenty are free, long before a lease of an
// hour runs out, and nobody is refused.
func TestSlotsAreFreeAfterSlowness(t *testing.T) {
	server := testdep.Redis(t)
	attempt := 0
	// What gives back a slot that was asked for in vain has a second for it.
	testdep.Undisturbed(t, 200*time.Millisecond, func(t testing.TB) {
		attempt++
		user := fmt.Sprint("ann", attempt)
		defer server.Resume()
		way := newCutter(t, server.Addr)
		s := open(t, "redis://"+way.Addr().String(), fleet.Options{})
		slots := tidegate.MustLimit(tidegate.Spec{
			Name: "slots", Scope: "user", Events: 20, Period: time.Hour, Algorithm: tidegate.Concurrency,
			Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailClosed}},
		})
		lim := tidegate.New(s, slots)
		var admitted atomic.Int64
		visit := func(timeout time.Duration) bool {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			slot := lim.Acquire(ctx, user)
			if slot.OK {
				admitted.Add(1)
				time.Sleep(5 * time.Millisecond)
				_ = slot.Cancel()
			}
			return slot.OK
		}
		direct := tidegate.New(open(t, "redis://"+server.Addr, fleet.Options{Deadline: patient, JoinLater: true}), slots)
		for round := range 3 {
			var visits sync.WaitGroup
			for i := range 120 {
				switch i {
				case 20:
					server.Pause()
				case 50:
					server.Resume()
				case 60:
					way.cuts.Store(150)
				case 100:
					way.cuts.Store(0)
				}
				timeout := time.Minute
				if i%5 == 0 {
					timeout = time.Duration(i%20) * time.Millisecond
				}
				visits.Go(func() { visit(timeout) })
				time.Sleep(5 * time.Millisecond)
			}
			visits.Wait()
			testdep.Eventually(t, "all slots are free", func() bool {
				d := direct.Peek(t.Context(), user)
				return d.Err == nil && d.Remaining == 20
			})
			testdep.Eventually(t, "ok", func() bool { return s.Health().Status == fleet.OK })
			testdep.Eventually(t, "somebody is admitted again", func() bool { return visit(time.Minute) })
			if admitted.Load() == 0 {
				t.Fatalf("round %d: nobody was admitted", round)
			}
		}
	}, server)
}
