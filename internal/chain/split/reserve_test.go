package split

import (
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// Reservations of shares are settled here, once, to the true cost; the part of the store below
// with them.
func TestReserveShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		for _, with := range []bool{false, true} {
			inner := still()
			b := &below{Backend: chain.Adapt(inner)}
			members := 4
			s := New(b, Options{Now: noon, Members: func() (int, int) { return members, 1 }})
			l := limit("a", 400)
			other := tidegate.MustLimit(tidegate.Spec{Name: "b", Events: 1000, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})
			checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 30, Estimate: true}}
			if with {
				checks = append(checks, tidegate.Check{Key: "k", Limit: other, Cost: 30, Estimate: true})
			}
			left := func(want, wantBelow int64) {
				t.Helper()
				d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1)
				if err != nil || d.Remaining != want {
					t.Errorf("%d left of the share, want %d (%v)", d.Remaining, want, err)
				}
				if d, _ := inner.Take(ctx, []tidegate.Check{{Key: "k", Limit: other}}, 1); with && d.Remaining != wantBelow {
					t.Errorf("%d left below, want %d", d.Remaining, wantBelow)
				}
			}
			for _, actual := range []int64{0, 10, 30, 50} {
				d, err := s.Reserve(ctx, checks, time.Hour)
				if err != nil || !d.OK || d.Receipt.Handle.IsZero() {
					t.Fatalf("%+v, %v", d, err)
				}
				left(70, 970)
				members = 2 // it is settled as it was charged
				if err := s.Settle(ctx, d.Receipt, actual); err != nil {
					t.Error(err)
				}
				members = 4
				left(100-actual, 1000-actual)
				if err := s.Settle(ctx, d.Receipt, actual); !errors.Is(err, tidegate.ErrSettled) {
					t.Errorf("settled twice: %v", err)
				}
				if err := s.Reset(ctx, []tidegate.Check{{Key: "k", Limit: l}, {Key: "k", Limit: other}}); err != nil {
					t.Fatal(err)
				}
				left(100, 1000)
			}
			b.refuse = true
			if d, err := s.Reserve(ctx, checks, time.Hour); with && (err != nil || d.OK) {
				t.Errorf("%+v, %v", d, err)
			}
			if with {
				left(100, 1000)
			}
			// Another instance does not have it.
			b.refuse = false
			d, err := s.Reserve(ctx, checks[:1], time.Hour)
			if err != nil || !d.OK {
				t.Fatalf("%+v, %v", d, err)
			}
			elsewhere := New(chain.Adapt(still()), Options{Now: noon, Members: func() (int, int) { return 4, 2 }})
			if err := elsewhere.Settle(ctx, d.Receipt, 1); !errors.Is(err, tidegate.ErrElsewhere) {
				t.Errorf("settled elsewhere: %v", err)
			}
			if err := elsewhere.Adjust(ctx, d.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -1}}); !errors.Is(err, tidegate.ErrElsewhere) {
				t.Errorf("returned elsewhere: %v", err)
			}
		}
	})
}

// Counted in one store with other limits, a reservation of both is settled as that store does.
func TestReserveSharesBesideALine(t *testing.T) {
	now := noon()
	clock := func() time.Time { return now }
	plain := memory.Open(memory.Config{Now: clock})
	store := memory.Open(memory.Config{Now: clock})
	s := New(chain.Adapt(store), Options{Now: clock, Local: store, Whole: true})
	line := tidegate.MustLimit(tidegate.Spec{Name: "line", Algorithm: tidegate.LeakyBucket, Events: 10, Period: time.Second, Burst: 50})
	share := limitOf(tidegate.Spec{Name: "share", Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour})
	checks := func() []tidegate.Check {
		return []tidegate.Check{
			{Key: "k", Limit: line, Cost: 10, MaxWait: time.Minute, Estimate: true},
			{Key: "k", Limit: share, Cost: 10, Estimate: true},
		}
	}
	for _, actual := range []int64{10, 4, 0, 15} {
		a, errA := plain.Reserve(ctx, checks(), time.Hour)
		b, errB := s.Reserve(ctx, checks(), time.Hour)
		if errA != nil || errB != nil || a.OK != b.OK || a.Wait != b.Wait {
			t.Fatalf("%+v, %v; want %+v, %v", b, errB, a, errA)
		}
		if err := errors.Join(plain.Settle(ctx, a.Receipt, actual), s.Settle(ctx, b.Receipt, actual)); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*tidegate.Limit{line, share} {
			peek := []tidegate.Check{{Key: "k", Limit: l, MaxWait: time.Minute}}
			a, _ := plain.Take(ctx, peek, 1)
			b, _ := s.Take(ctx, peek, 1)
			if a.Remaining != b.Remaining || a.ResetAfter != b.ResetAfter {
				t.Errorf("%s, settled at %d: %+v, want %+v", l, actual, b, a)
			}
		}
		now = now.Add(100 * time.Millisecond)
	}
}
