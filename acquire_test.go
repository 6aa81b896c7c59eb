package tidegate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

const lease = 30 * time.Second

func withCancel(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// crashed is a store to a holder that is gone: nobody renews.
type crashed struct{ tidegate.Store }

func TestAcquireHoldsASlotUntilCancel(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.Slots(2, lease))
	a, b, c := lim.Acquire(t.Context(), "alice"), lim.Acquire(t.Context(), "alice"), lim.Acquire(t.Context(), "alice")
	if !a.OK || !b.OK || c.OK || c.RetryAfter <= 0 || c.RetryAfter > lease {
		t.Fatalf("%+v, %+v, %+v", a.Decision, b.Decision, c.Decision)
	}
	if err := c.Cancel(); err != nil {
		t.Errorf("cancelling one that was refused: %v", err)
	}
	wantLeft(t, lim, "alice", 0)
	if err := a.Cancel(); err != nil {
		t.Error(err)
	}
	wantLeft(t, lim, "alice", 1)
	if err := a.Cancel(); !errors.Is(err, tidegate.ErrSettled) {
		t.Errorf("cancelled again: %v", err)
	}
	wantLeft(t, lim, "alice", 1) // not somebody else's
	if err := b.Settle(12345); err != nil {
		t.Error(err)
	}
	wantLeft(t, lim, "alice", 2)
}

func TestTrap21LongHoldIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.Slots(1, lease))
		held := lim.Acquire(t.Context(), "alice")
		for range 600 {
			time.Sleep(time.Second)
			synctest.Wait()
			if d := lim.Peek(t.Context(), "alice"); d.OK {
				t.Fatal("the slot is free while it is held")
			}
		}
		_ = held.Cancel()
		wantLeft(t, lim, "alice", 1)
		taken := lim.Acquire(t.Context(), "alice")
		time.Sleep(lease)
		synctest.Wait()
		_ = held.Cancel() // again, now that it is another's
		wantLeft(t, lim, "alice", 0)
		_ = taken.Cancel()
	})
}

func TestTrap21CrashedHolderFreesItsSlotWhenTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, slots := memory.New(), tidegate.Slots(1, lease)
		lim := tidegate.New(store, slots)
		if d := tidegate.New(crashed{store}, slots).Acquire(t.Context(), "alice"); !d.OK {
			t.Fatalf("%+v", d.Decision)
		}
		d := lim.Allow(t.Context(), "alice")
		if d.OK || d.RetryAfter != lease {
			t.Errorf("%+v", d)
		}
		time.Sleep(lease - time.Nanosecond)
		wantLeft(t, lim, "alice", 0)
		time.Sleep(time.Nanosecond)
		wantLeft(t, lim, "alice", 1)
	})
}

func TestTrap21EndedContextFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.Slots(1, lease))
		ctx, cancel := withCancel(t)
		held := lim.Acquire(ctx, "alice")
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		wantLeft(t, lim, "alice", 1)
		if err := held.Cancel(); !errors.Is(err, tidegate.ErrSettled) {
			t.Errorf("Cancel after the context ended: %v", err)
		}
	})
}

// A request can be over before its slot is taken. Under the race detector this
// also shows that the reservation is whole before its context can end it.
func TestTrap21ContextThatHasEndedLeaksNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.Slots(3, lease))
		ctx, cancel := withCancel(t)
		cancel()
		for range 200 {
			held := lim.Acquire(ctx, "alice")
			_ = held.Cancel()
		}
		synctest.Wait()
		wantLeft(t, lim, "alice", 3)
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				ctx, cancel := withCancel(t)
				go cancel()
				lim.Acquire(ctx, "alice")
			})
		}
		all.Wait()
		synctest.Wait()
		wantLeft(t, lim, "alice", 3)
		time.Sleep(2 * lease) // no timer is left that renews what is gone
		wantLeft(t, lim, "alice", 3)
	})
}

func TestDetachedSlotOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.Slots(1, lease))
		ctx, cancel := withCancel(t)
		held := lim.Acquire(ctx, "alice")
		held.Detach()
		held.Detach()
		cancel()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		wantLeft(t, lim, "alice", 0)
		if err := held.Cancel(); err != nil {
			t.Error(err)
		}
		wantLeft(t, lim, "alice", 1)
		lim.Reserve(t.Context(), "alice", 0).Detach() // nothing to detach, nothing happens
	})
}

// Slots beside other limits: the event is spent, the slot comes back.
func TestAcquireWithOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, slots, hour := memory.New(), tidegate.Slots(1, lease), tidegate.PerHour(3)
		lim, events := tidegate.New(store, slots, hour), tidegate.New(store, hour)
		for i := range int64(3) {
			held := lim.Acquire(t.Context(), "alice")
			if again := lim.Acquire(t.Context(), "alice"); !held.OK || again.OK {
				t.Fatalf("%+v, %+v", held.Decision, again.Decision)
			}
			_ = held.Cancel()
			wantLeft(t, events, "alice", 2-i)
		}
		if d := lim.Acquire(t.Context(), "alice"); d.OK || d.Limit != hour {
			t.Errorf("%+v", d.Decision)
		}
		wantLeft(t, tidegate.New(store, slots), "alice", 1)
		if r := events.Acquire(t.Context(), "bob"); !r.OK || r.Cancel() != nil {
			t.Errorf("without slots: %+v", r.Decision)
		}
		wantLeft(t, events, "bob", 2)
	})
}

// Two kinds of slots at once: renewed often enough for the shorter lease.
func TestAcquireTwoSlotsRenewsForTheShorterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := tidegate.MustLimit(tidegate.Spec{Name: "short", Events: 1, Period: time.Second, Algorithm: tidegate.Concurrency})
		store, long := memory.New(), tidegate.Slots(1, time.Hour)
		held := tidegate.New(store, long, short).Acquire(t.Context(), "alice")
		for range 30 {
			time.Sleep(time.Second)
			synctest.Wait()
			wantLeft(t, tidegate.New(store, short), "alice", 0)
		}
		_ = held.Cancel()
		wantLeft(t, tidegate.New(store, short), "alice", 1)
		wantLeft(t, tidegate.New(store, long), "alice", 1)
	})
}
