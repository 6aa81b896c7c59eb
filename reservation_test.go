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

func TestSettleReplacesTheEstimate(t *testing.T) {
	f := func(estimate, actual, left int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			lim := tidegate.New(memory.New(), tidegate.PerHour(100))
			r := lim.Reserve(t.Context(), "alice", estimate)
			if !r.OK || r.Delay() != 0 {
				t.Fatalf("%+v", r.Decision)
			}
			wantLeft(t, lim, "alice", 100-estimate)
			time.Sleep(time.Minute)
			if err := r.Settle(actual); err != nil {
				t.Errorf("Settle(%d): %v", actual, err)
			}
			wantLeft(t, lim, "alice", left)
			for _, again := range []func() error{func() error { return r.Settle(1) }, r.Cancel} {
				if err := again(); !errors.Is(err, tidegate.ErrSettled) {
					t.Errorf("settled again: %v", err)
				}
			}
			wantLeft(t, lim, "alice", left)
		})
	}
	f(60, 45, 55)
	f(60, 60, 40)
	f(60, 0, 100)
	f(60, -7, 100) // less than nothing is nothing
	f(60, 75, 25)  // more than reserved: charged unasked
	f(60, 1000, 0)
	f(1, 2, 98)
}

func TestCancelledReservationDidNotHappen(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(100), bucket(100, time.Hour))
	r := lim.Reserve(t.Context(), "alice", 80)
	if d := lim.Reserve(t.Context(), "alice", 30); d.OK {
		t.Errorf("80 and 30 of 100: %+v", d.Decision)
	}
	if err := r.Cancel(); err != nil {
		t.Error(err)
	}
	if d := lim.Reserve(t.Context(), "alice", 100); !d.OK {
		t.Errorf("after Cancel: %+v", d.Decision)
	}
}

// A caller that dies before settling has used what was reserved.
func TestUnsettledReservationStaysCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.PerDay(100))
		r := lim.Reserve(t.Context(), "alice", 60)
		time.Sleep(tidegate.ReserveTTL)
		wantLeft(t, lim, "alice", 40)
		if err := r.Settle(10); !errors.Is(err, tidegate.ErrSettled) {
			t.Errorf("settled after %s: %v", tidegate.ReserveTTL, err)
		}
		wantLeft(t, lim, "alice", 40)
	})
}

func TestRefusedReservation(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.PerHour(100))
	r := lim.Reserve(t.Context(), "alice", 101)
	if r.OK || !r.Never {
		t.Errorf("%+v", r.Decision)
	}
	if err := r.Settle(50); err != nil {
		t.Errorf("Settle of a refused one: %v", err)
	}
	wantLeft(t, lim, "alice", 100)
}

// The caller's context often ends with the call whose cost is to be settled.
func TestSettleOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := tidegate.New(memory.New(), tidegate.PerHour(100))
		ctx, cancel := withCancel(t)
		r := lim.Reserve(ctx, "alice", 60)
		cancel()
		synctest.Wait()
		wantLeft(t, lim, "alice", 40) // unlike a slot, an estimate does not end with it
		if err := r.Settle(10); err != nil {
			t.Error(err)
		}
		wantLeft(t, lim, "alice", 90)
	})
}

func TestReserveOfNothingIsSettledToo(t *testing.T) {
	lim := tidegate.New(memory.New(), tidegate.MustLimit(tidegate.Spec{Events: 100, Period: time.Hour, Algorithm: tidegate.TokenBucket}))
	r := lim.Reserve(t.Context(), "alice", 0)
	if err := r.Settle(50); err != nil {
		t.Fatal(err)
	}
	if left := lim.Peek(t.Context(), "alice").Remaining; left != 50 {
		t.Errorf("%d left of 100 after settling at 50", left)
	}
}

// unreached is a store that cannot be reached for some calls of Settle.
type unreached struct {
	*memory.Store
	calls int
}

func (u *unreached) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	if u.calls--; u.calls >= 0 {
		return errDown
	}
	return u.Store.Settle(ctx, r, actual)
}

// While the store is away, a reservation is not settled, and can be settled later: at the cost of the
// first call, so that a deferred Cancel does not give back what was used.
func TestSettleAfterAnOutage(t *testing.T) {
	f := func(fails int, want int64, told ...error) {
		t.Helper()
		store := &unreached{memory.New(), fails}
		lim := tidegate.New(store, tidegate.PerHour(100))
		r := lim.Reserve(t.Context(), "alice", 60)
		for i, err := range told {
			actual := int64(45)
			if i == len(told)-1 && i > 0 {
				actual = 0 // the deferred one
			}
			if got := r.Settle(actual); !errors.Is(got, err) {
				t.Errorf("%d fail: call %d: %v, want %v", fails, i, got, err)
			}
		}
		wantLeft(t, lim, "alice", want)
	}
	f(0, 55, nil)
	f(0, 55, nil, tidegate.ErrSettled)
	f(1, 40, errDown)
	f(1, 55, errDown, nil, tidegate.ErrSettled)
	f(1, 55, errDown, tidegate.ErrSettled)
	f(2, 55, errDown, errDown, tidegate.ErrSettled)
	f(3, 40, errDown, errDown, errDown)
}
