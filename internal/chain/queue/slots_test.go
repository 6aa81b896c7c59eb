package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// A request that waits for its turn longer than the lease of its slot keeps the slot, until it
// leaves the queue.
func TestSlotsOfWhoWaits(t *testing.T) {
	f := func(what string, turn tidegate.Check, before int) {
		t.Helper()
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				s := New(chain.Adapt(store))
				slots := tidegate.Slots(10, time.Second)
				free := func() int64 { return tidegate.New(store, slots).Peek(t.Context(), "k").Remaining }
				for range before {
					go func() { _, _ = s.Take(t.Context(), []tidegate.Check{{Key: "other", Limit: slots, Cost: 1}, turn}, 1) }()
					synctest.Wait()
				}
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var done atomic.Bool
				go func() {
					_, _ = s.Take(ctx, []tidegate.Check{{Key: "k", Limit: slots, Cost: 1}, turn}, 1)
					done.Store(true)
				}()
				for range 49 {
					synctest.Wait()
					if n := free(); n != 9 || done.Load() {
						t.Fatalf("%s: %d of 10 slots are free while one waits; its turn has come is %t", what, n, done.Load())
					}
					time.Sleep(100 * ms)
				}
				if leaves {
					leave()
					synctest.Wait()
					if n := free(); n != 10 {
						t.Errorf("%s: %d of 10 slots are free when it has left", what, n)
					}
				}
				time.Sleep(200 * ms) // its turn comes
				synctest.Wait()
				if want := map[bool]int64{false: 9, true: 10}[leaves]; !done.Load() || free() != want {
					t.Errorf("%s: %d of 10 slots are free at its turn, which has come is %t", what, free(), done.Load())
				}
				time.Sleep(2 * time.Second)
				if n := free(); n != 10 {
					t.Errorf("%s: %d of 10 slots are free when nobody renews them any more", what, n)
				}
			})
		}
	}
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket} {
		spec := tidegate.Spec{Name: "turns", Events: 1, Period: 5 * time.Second, Algorithm: a, Burst: 1}
		if a == tidegate.LeakyBucket {
			spec.Burst = 5
		}
		f(a.String(), tidegate.Check{Key: "k", Limit: tidegate.MustLimit(spec), Cost: 1, MaxWait: time.Minute}, 1)
		spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Minute, DropOldest: true}}}
		if spec.Burst = 1; a == tidegate.TokenBucket {
			f(a.String()+" in place of the oldest", tidegate.Check{Key: "k", Limit: tidegate.MustLimit(spec), Cost: 1, MaxWait: 5 * time.Second}, 2)
		} else {
			f(a.String()+" in place of the oldest", checkOf(tidegate.MustLimit(spec)), 2)
		}
	}
}
