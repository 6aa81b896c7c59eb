package memory

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A vector refused after the clock was set back is refused for a period, not
// until the old time returns.
func TestVectorAfterTheClockWasSetBack(t *testing.T) {
	s, clock := openAt(0)
	checks := []tidegate.Check{
		{Key: "a", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 2, Period: minute})},
		{Key: "a", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 100, Period: minute})},
	}
	take := func() bool {
		d, err := s.Take(context.Background(), checks, 1)
		if err != nil {
			t.Fatal(err)
		}
		return d.OK
	}
	for take() {
	}
	clock.pass(-24 * time.Hour)
	if take() {
		t.Error("the step refilled")
	}
	for waited := time.Duration(0); !take(); waited += 10 * time.Second {
		if waited > 2*minute {
			t.Fatal("still refused two minutes after the step")
		}
		clock.pass(10 * time.Second)
	}
}

// Settled reservations leave nothing behind, even if the oldest is never settled.
func TestSettledReservationsDoNotPileUp(t *testing.T) {
	s := New()
	checks := []tidegate.Check{{Key: "a", Cost: 1, Estimate: true, Limit: tidegate.PerDay(1000)}}
	reserve := func() tidegate.Receipt {
		d, err := s.Reserve(context.Background(), checks, time.Hour)
		if err != nil || d.Receipt.Handle.IsZero() {
			t.Fatal(d, err)
		}
		return d.Receipt
	}
	reserve()
	before := s.budget.used.Load()
	for range 10_000 {
		if err := s.Settle(context.Background(), reserve(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.reservations.queue); n > 200 {
		t.Errorf("%d ids are queued for one open reservation", n)
	}
	if after := s.budget.used.Load(); after != before {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

func TestSlotsAskedForInManyCopies(t *testing.T) {
	s := New()
	checks := []tidegate.Check{{Key: "a", Cost: 1, Limit: tidegate.Slots(10, time.Hour)}}
	d, err := s.Take(context.Background(), checks, 1<<40)
	if err != nil || d.Granted != 10 {
		t.Errorf("%+v (%v), want 10 granted", d, err)
	}
}

// Clocks of machines that have just been switched on start at the epoch.
func TestClockAtTheEpoch(t *testing.T) {
	now := time.Unix(3600, 0)
	s := Open(Config{Now: func() time.Time { return now }})
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.FixedWindow, Period: 7 * 24 * time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Week},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day, Zone: "Asia/Seoul"},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Month, Anchor: 15},
		{Algorithm: tidegate.TokenBucket, Period: time.Hour},
		{Algorithm: tidegate.SlidingWindow, Period: time.Hour},
	} {
		spec.Events = 2
		l := tidegate.MustLimit(spec)
		admitted := 0
		for range 5 {
			if d, err := s.TakeOne(context.Background(), "a", l, 1, 0); err == nil && d.OK {
				admitted++
			}
		}
		if admitted != 2 {
			t.Errorf("%s: %d of 5 admitted, want 2", l, admitted)
		}
	}
}

// Records freed at the bound are used again whatever their size.
func TestRecordsOfOtherSizesAreUsedAtTheBound(t *testing.T) {
	s, clock := openAt(60_000)
	l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 60, Period: minute})
	for key := range 60 {
		for range 60 {
			clock.pass(time.Millisecond)
			ask1(t, s, l, string(rune('A'+key)))
		}
	}
	clock.pass(2 * minute) // all of that is over
	for key := range 500 {
		if d := ask1(t, s, l, "new"+string(rune('A'+key))); errors.Is(d.Err, tidegate.ErrFull) {
			t.Fatalf("key %d: %v, with nothing but idle keys", key, d.Err)
		}
	}
}

// Reservations that have expired take no memory, whatever lasts longer and was made before them.
func TestExpiredReservationsMakeRoom(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Open(Config{MaxBytes: 64 << 10, Now: func() time.Time { return now }})
	checks := []tidegate.Check{{Key: "a", Cost: 1, Estimate: true, Limit: tidegate.PerSecond(1000)}}
	reserve := func(ttl time.Duration) tidegate.Receipt {
		d, err := s.Reserve(context.Background(), checks, ttl)
		if err != nil || !d.OK {
			t.Fatalf("%s after the first, with %d in memory: %+v, %v", ttl, len(s.reservations.byID), d, err)
		}
		return d.Receipt
	}
	long := reserve(24 * time.Hour)
	for i := range 5000 {
		reserve(time.Duration(i*37%20+1) * time.Second)
		if i%3 == 0 { // some are settled, in between
			if err := s.Settle(context.Background(), reserve(time.Duration(i*53%20+1)*time.Second), 0); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Second)
		reserve(time.Minute) // which forgets those that have expired
		for id, one := range s.reservations.byID {
			if one.expires <= s.now() {
				t.Fatalf("%s has expired, and is still there", id)
			}
		}
	}
	if err := s.Settle(context.Background(), long, 0); err != nil {
		t.Errorf("the one that lasts a day: %v", err)
	}
}
