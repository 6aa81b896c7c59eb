package tidegate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// The numbers are those of docs/traps.md.

// everyKind is a limit of each algorithm: 10 events a minute, or a day of a quota.
func everyKind(events int64) map[string]*tidegate.Limit {
	limits := map[string]*tidegate.Limit{}
	for a := tidegate.TokenBucket; a <= tidegate.Quota; a++ {
		s := tidegate.Spec{Events: events, Period: time.Minute, Algorithm: a}
		switch a {
		case tidegate.LeakyBucket:
			s.Burst = events - 1
		case tidegate.Quota:
			s.Period, s.Calendar = 0, tidegate.Day
		}
		limits[a.String()] = tidegate.MustLimit(s)
	}
	return limits
}

// period is how long l takes to be as good as new.
func period(l *tidegate.Limit) time.Duration {
	if l.Algorithm == tidegate.Quota {
		return 24 * time.Hour
	}
	return l.Period
}

// A client that asks for twice its limit all the time gets its limit, all the
// time: what is refused does not count.
func TestTrap1ClientAtTwiceTheLimitGetsItsLimit(t *testing.T) {
	inBubble(t, everyKind(10), func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter) {
		ask := func(periods int) (served int) {
			for range 20 * periods {
				if lim.Allow(t.Context(), "alice").OK {
					served++
				}
				time.Sleep(period(l) / 20)
			}
			return served
		}
		ask(3) // what a fresh key has in store is gone
		if served := ask(100); served < 950 || served > 1000 {
			t.Errorf("%d were served in 100 periods, want 1000 and at most 5 %% less", served)
		}
	})
}

// One that asks for more than there can ever be leaves nothing behind.
func TestTrap2OversizedCostLeavesNothingBehind(t *testing.T) {
	for name, l := range everyKind(10) {
		store := memory.New()
		lim := tidegate.New(store, l)
		for _, n := range []int64{11, 1_000_000, 1<<63 - 1} {
			if d := lim.AllowN(t.Context(), "alice", n); d.OK || !d.Never || d.Err != nil {
				t.Errorf("%s: AllowN(%d): %+v", name, n, d)
			}
		}
		if keys := store.Stats().Keys; keys != 0 {
			t.Errorf("%s: %d keys are remembered", name, keys)
		}
		if d := lim.Allow(t.Context(), "alice"); !d.OK {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Thirty requests against a tight and a wide limit: five pass, and the wide one
// has paid for five.
func TestTrap3WideLimitPaysForWhatPassed(t *testing.T) {
	for name, wide := range everyKind(100) {
		if wide.Algorithm == tidegate.LeakyBucket {
			continue // who does not wait is served one at a time
		}
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			tight := tidegate.MustLimit(tidegate.Spec{Name: "tight", Events: 5, Period: time.Hour})
			lim := tidegate.New(store, wide, tight)
			served := int64(0)
			for range 30 {
				served += lim.Allow(t.Context(), "alice").Granted
			}
			rest := int64(0)
			for range 200 {
				rest += tidegate.New(store, wide).Allow(t.Context(), "alice").Granted
			}
			if served != 5 || rest != 95 {
				t.Errorf("%s: %d were served, and %d more by the wide limit; want 5 and 95", name, served, rest)
			}
		})
	}
}

// Limits are made anew at every reload. Counters are not.
func TestTrap5ReloadedLimitKeepsWhatWasUsed(t *testing.T) {
	for name, before := range everyKind(10) {
		if before.Algorithm == tidegate.LeakyBucket {
			continue // who does not wait is served one at a time
		}
		synctest.Test(t, func(t *testing.T) {
			f := func(events, left int64) {
				t.Helper()
				store := memory.New()
				tidegate.New(store, before).AllowN(t.Context(), "alice", 8)
				spec := before.Spec
				spec.Events = events
				if spec.Burst > 0 {
					spec.Burst = events
				}
				after := tidegate.MustLimit(spec)
				lim := tidegate.New(store, after)
				wantLeft(t, lim, "alice", left)
				if d := lim.AllowN(t.Context(), "alice", left+1); d.OK || d.Limit != after || d.Remaining != left {
					t.Errorf("%s from 10 to %d: %+v", name, events, d)
				}
			}
			f(10, 2) // the same again: nobody is refilled
			f(30, 22)
			f(9, 1)
			f(8, 0)
			f(3, 0) // below what is used: nothing left, not less than nothing
		})
	}
}

// At 100/s, polled every 17 ms for whatever there is: all of it comes out.
func TestTrap8FractionsAreNeitherLostNorGivenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tidegate.MustLimit(tidegate.Spec{Events: 100, Period: time.Second, Burst: 10, Algorithm: tidegate.TokenBucket})
		store := memory.New()
		checks := []tidegate.Check{{Key: "alice", Limit: l, Cost: 1}}
		got, start := int64(0), time.Now()
		for range 10_000 {
			d, err := store.Take(t.Context(), checks, 1000)
			if err != nil {
				t.Fatal(err)
			}
			got += d.Granted
			time.Sleep(17 * time.Millisecond)
		}
		due := 10 + int64((time.Since(start)-17*time.Millisecond).Seconds()*100)
		if got != due {
			t.Errorf("%d came out, want %d", got, due)
		}
	})
}
