package tidegate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// attentive does nothing for a context that has ended, as a store at the other
// end of a network would.
type attentive struct{ *memory.Store }

func (s attentive) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Adjust(ctx, r, checks)
}

func (s attentive) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Renew(ctx, r, checks)
}

func (s attentive) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Settle(ctx, r, actual)
}

// What is given back because a context ended must not be lost because it did.
func TestGivingBackOutlivesTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := attentive{memory.New()}
		slots := tidegate.New(store, tidegate.Slots(2, lease))
		ctx, cancel := withCancel(t)
		slots.Acquire(ctx, "alice")
		kept := slots.Acquire(ctx, "alice")
		kept.Detach()
		hour := tidegate.New(store, tidegate.PerHour(100))
		tokens := hour.Reserve(ctx, "alice", 60)
		line := tidegate.New(store, bucket(1, time.Minute))
		line.Allow(ctx, "alice")
		time.AfterFunc(time.Second, cancel)
		if err := line.Wait(ctx, "alice"); err != context.Canceled {
			t.Errorf("Wait: %v", err)
		}
		time.Sleep(10 * lease) // the one that was kept is still renewed
		synctest.Wait()
		wantLeft(t, slots, "alice", 1)
		wantLeft(t, line, "alice", 1)
		if err := errors.Join(kept.Cancel(), tokens.Settle(10)); err != nil {
			t.Error(err)
		}
		wantLeft(t, slots, "alice", 2)
		wantLeft(t, hour, "alice", 90)
	})
}
