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

// silent is a store that says nothing until the context ends.
type silent struct{}

func (silent) Take(ctx context.Context, _ []tidegate.Check, _ int) (tidegate.Decision, error) {
	<-ctx.Done()
	return tidegate.Decision{}, ctx.Err()
}

func (s silent) Reserve(ctx context.Context, checks []tidegate.Check, _ time.Duration) (tidegate.Decision, error) {
	return s.Take(ctx, checks, 1)
}

func (silent) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return nil }
func (silent) Settle(context.Context, tidegate.Receipt, int64) error            { return nil }

// silentLocal is one that would fall back, if its caller did not leave before.
type silentLocal struct{ silent }

func (silentLocal) LocalFallback() {}

// A caller that has left is not served, as nobody would be charged: whatever the fail mode. A deadline may
// also be the time that the caller gives a store; then the fail mode decides.
func TestWhoHasLeftIsNotAdmitted(t *testing.T) {
	f := func(store tidegate.Store, reason error, mode tidegate.FailMode, want bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			lim := tidegate.New(store, tidegate.PerMinute(5)).OnStoreFailure(mode)
			end := func() context.Context {
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				t.Cleanup(leave)
				if reason == context.Canceled {
					time.AfterFunc(time.Millisecond, leave)
				}
				return ctx
			}
			for name, d := range map[string]tidegate.Decision{
				"Allow":   lim.Allow(end(), "alice"),
				"AllowN":  lim.AllowN(end(), "alice", 3),
				"Peek":    lim.Peek(end(), "alice"),
				"Reserve": lim.Reserve(end(), "alice", 3).Decision,
				"Acquire": lim.Acquire(end(), "alice").Decision,
			} {
				if d.OK != want || (d.RetryAfter > 0) == want || !errors.Is(d.Err, reason) {
					t.Errorf("%T, %v, mode %d: %s: %+v, want OK %t", store, reason, mode, name, d, want)
				}
			}
			if err := lim.Wait(end(), "alice"); !errors.Is(err, reason) {
				t.Errorf("%T, %v, mode %d: Wait: %v", store, reason, mode, err)
			}
		})
	}
	for _, mode := range []tidegate.FailMode{tidegate.FailDefault, tidegate.FailOpen, tidegate.FailClosed} {
		for _, store := range []tidegate.Store{silent{}, silentLocal{}} {
			f(store, context.Canceled, mode, false)
		}
		f(silentLocal{}, context.DeadlineExceeded, mode, false)
		f(silent{}, context.DeadlineExceeded, mode, mode != tidegate.FailClosed)
	}
	f(silentLocal{}, context.Canceled, tidegate.FailLocal, false)
	f(silentLocal{}, context.DeadlineExceeded, tidegate.FailLocal, false)
}
