package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

const year = 366 * 24 * time.Hour

// A clock that is years ahead, or was set back by years, refills nobody by that
// step alone, holds nobody back for more than a period, and limits as before.
func TestClockStepsByYears(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range stateful {
		for _, step := range []time.Duration{year, 5 * year, 9 * year, 17 * year, 18 * year, 40 * year, -year, -5 * year, -17 * year, -40 * year} {
			t.Run(fmt.Sprintf("%s/%d years", a, int(step/year)), func(t *testing.T) {
				s, clock := openAt(0)
				spec := specOf("limit", a, 5, time.Hour, tidegate.EvictLeast)
				period := time.Hour
				if a == tidegate.Quota {
					period = 24 * time.Hour
				}
				l := tidegate.MustLimit(spec)
				var wait time.Duration
				if a == tidegate.LeakyBucket {
					wait = farAhead
				}
				admitted := func(keys int) (n int) {
					for k := range keys {
						for range 8 {
							if d, err := s.TakeOne(context.Background(), fmt.Sprint(k), l, 1, wait); err == nil && d.OK {
								n++
							}
						}
					}
					return n
				}
				const keys = 300
				if n := admitted(keys); n != 5*keys {
					t.Fatalf("%d admitted, want %d", n, 5*keys)
				}
				clock.pass(step)
				n := admitted(keys)
				if step > 0 && n != 5*keys || step < 0 && a != tidegate.FixedWindow && a != tidegate.Quota && n > 0 {
					t.Fatalf("%d admitted after the step", n)
				}
				for range 3 {
					clock.pass(2 * period)
					if n := admitted(keys); n != 5*keys {
						t.Fatalf("%d admitted two periods later, want %d", n, 5*keys)
					}
				}
				both := []tidegate.Check{{Key: "0", Limit: l, Cost: 1}, {Key: "v", Limit: tidegate.PerDay(100), Cost: 1}}
				if d, err := s.Take(context.Background(), both, 1); err != nil || d.OK {
					t.Errorf("a vector is admitted: %+v (%v)", d, err)
				}
			})
		}
	}
}

// A clock that panics leaves nothing behind that others would wait for.
func TestClockThatPanics(t *testing.T) {
	for _, l := range append(everyAlgorithm(), tidegate.Slots(5, time.Hour)) {
		for _, n := range []int{1, 2} {
			clock, calls, fail := &testClock{t: noon}, 0, -1
			s := Open(Config{Now: func() time.Time {
				if calls++; calls == fail {
					panic("no clock")
				}
				return clock.now()
			}})
			checks := make([]tidegate.Check, n)
			for i := range checks {
				checks[i] = tidegate.Check{Key: string(rune('a' + i)), Limit: l, Cost: 1, MaxWait: farAhead}
			}
			take := func() (panicked bool) {
				defer func() { panicked = recover() != nil }()
				_, err := s.Take(context.Background(), checks, 1)
				return err != nil
			}
			take()
			for after := 1; after <= 4; after++ {
				fail = calls + after
				take()
				fail = -1
				done := make(chan bool)
				go func() { done <- take() }()
				select {
				case failed := <-done:
					if failed {
						t.Errorf("%s, %d checks: the next decision failed", l.Algorithm, n)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("%s, %d checks: the next decision hangs", l.Algorithm, n)
				}
			}
		}
	}
}

// Many slots asked for at once are given as far as they fit, whatever each costs.
func TestSlotsAreGivenAsFarAsTheyFit(t *testing.T) {
	for _, c := range []struct{ slots, cost, copies, want int64 }{
		{10_000, 1, 1 << 40, 10_000}, {10_000, 3, 10_000, 3_333}, {10_000, 10_000, 10_000, 1}, {7, 3, 9, 2}, {5_000, 2, 1 << 50, 2_500},
	} {
		for _, second := range []bool{false, true} {
			s := New()
			checks := []tidegate.Check{{Key: "a", Cost: c.cost, Limit: tidegate.Slots(c.slots, time.Hour)}}
			if second {
				checks = append(checks, tidegate.Check{Key: "b", Cost: 1, Limit: tidegate.Slots(10_000, time.Hour)})
			}
			d, err := s.Take(context.Background(), checks, int(c.copies))
			if err != nil || d.Granted != c.want {
				t.Errorf("%+v, vector %t: %d granted (%v)", c, second, d.Granted, err)
			}
		}
	}
}

// However many slots are taken at one instant of a clock that stands still, each
// is given back by its receipt, and with it what was counted beside it.
func TestSlotsAtOneInstant(t *testing.T) {
	s, _ := openAt(0)
	slots := tidegate.Slots(10_000, time.Hour)
	log := tidegate.MustLimit(tidegate.Spec{Name: "log", Algorithm: tidegate.SlidingLog, Events: 10_000, Period: time.Hour})
	var receipts []tidegate.Receipt
	checksOf := func(k int, cost int64) []tidegate.Check {
		return []tidegate.Check{{Key: fmt.Sprint(k % 9), Limit: slots, Cost: cost}, {Key: "a", Limit: log, Cost: cost}}
	}
	takes := 5000
	if raceEnabled {
		takes = 1000
	}
	for k := range takes {
		d, err := s.Take(context.Background(), checksOf(k, 1), 1)
		if err != nil || !d.OK {
			t.Fatalf("%+v (%v)", d, err)
		}
		receipts = append(receipts, d.Receipt)
	}
	for k, r := range receipts {
		if err := s.Adjust(context.Background(), r, checksOf(k, -1)); err != nil {
			t.Fatal(err)
		}
		d, err := s.TakeOne(context.Background(), "a", log, 0, 0)
		if want := int64(10_000 - takes + k + 1); err != nil || d.Remaining != want {
			t.Fatalf("after %d were given back %d remain, want %d (%v)", k+1, d.Remaining, want, err)
		}
	}
	for k := range 9 {
		if d, err := s.TakeOne(context.Background(), fmt.Sprint(k), slots, 0, 0); err != nil || d.Remaining != 10_000 {
			t.Errorf("key %d: %+v (%v): slots are still taken", k, d, err)
		}
	}
}
