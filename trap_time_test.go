package tidegate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Periods that are no whole seconds are kept to the nanosecond: what is owed is
// neither forgotten early nor held against anybody for longer.
func TestTrap7SubSecondPeriodsAreNotRounded(t *testing.T) {
	for _, p := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 999 * time.Millisecond, 1900 * time.Millisecond} {
		for a := tidegate.TokenBucket; a < tidegate.Quota; a++ {
			l := tidegate.MustLimit(tidegate.Spec{Events: 1, Period: p, Algorithm: a})
			if a == tidegate.SlidingWindow || a == tidegate.SubWindows {
				continue // an older count leaves bit by bit; see the exact retries below
			}
			synctest.Test(t, func(t *testing.T) {
				lim := tidegate.New(memory.New(), l)
				time.Sleep(p - time.Duration(time.Now().UnixNano())%p) // the start of a window
				for i := range 10 {
					if d := lim.Allow(t.Context(), "alice"); !d.OK {
						t.Fatalf("%s, period %d: %+v", l, i, d)
					}
					time.Sleep(p - time.Microsecond)
					if d := lim.Allow(t.Context(), "alice"); d.OK || d.RetryAfter > time.Microsecond {
						t.Fatalf("%s, a moment before the end of period %d: %+v", l, i, d)
					}
					time.Sleep(time.Microsecond)
				}
			})
		}
	}
}

// Keys whose time is over go, however short it was.
func TestTrap7NoKeyIsImmortal(t *testing.T) {
	testdep.SkipUnderRace(t)
	for a := tidegate.TokenBucket; a < tidegate.Quota; a++ {
		l := tidegate.MustLimit(tidegate.Spec{Events: 10, Period: time.Millisecond, Algorithm: a})
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			lim := tidegate.New(store, l)
			for i := range 20_000 {
				lim.Allow(t.Context(), fmt.Sprint("client ", i))
				time.Sleep(10 * time.Microsecond)
			}
			if s := store.Stats(); s.Keys > 2000 || s.Bytes > 200_000 {
				t.Errorf("%s: of 20,000 keys, none of which lives longer than 2 ms, %d are held in %d bytes", a, s.Keys, s.Bytes)
			}
		})
	}
}

// Around the turn of a second, a limit of 100/s as it is made without further
// thought lets 100 pass, not 200. A fixed window, asked for by name, does not.
func TestTrap17BoundaryOfAWindow(t *testing.T) {
	f := func(l *tidegate.Limit, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			lim := tidegate.New(memory.New(), l)
			lim.Allow(t.Context(), "somebody")
			time.Sleep(944 * time.Millisecond) // the bubble starts with a whole second
			passed := 0
			for range 112 * 4 {
				if lim.Allow(t.Context(), "alice").OK {
					passed++
				}
				time.Sleep(time.Millisecond / 4)
			}
			if passed != want {
				t.Errorf("%s: %d passed within 112 ms, want %d", l, passed, want)
			}
		})
	}
	fixed := tidegate.Spec{Events: 100, Period: time.Second, Algorithm: tidegate.FixedWindow}
	f(tidegate.PerSecond(100), 100)
	f(tidegate.MustLimit(fixed), 200)
}

// Nobody but the store says what time it is: a Check has none to tell.
func TestTrap17TheStoresClockDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		store := memory.Open(memory.Config{Now: func() time.Time { return now }})
		lim := tidegate.New(store, tidegate.PerMinute(1))
		lim.Allow(t.Context(), "alice")
		time.Sleep(time.Hour) // on the caller's clock
		wantLeft(t, lim, "alice", 0)
		now = now.Add(time.Minute)
		wantLeft(t, lim, "alice", 1)
	})
}

// After a night of silence a key may spend its burst, once.
func TestTrap18IdleKeyAdmitsItsBurstOnce(t *testing.T) {
	inBubble(t, everyKind(10), func(t *testing.T, l *tidegate.Limit, lim *tidegate.Limiter) {
		lim.AllowN(t.Context(), "alice", 10)
		for _, idle := range []time.Duration{48 * time.Hour, 1000 * 24 * time.Hour} {
			time.Sleep(idle)
			if !lim.AllowN(t.Context(), "alice", 10).OK {
				t.Errorf("after %s not all of the burst is there", idle)
			}
			if d := lim.Allow(t.Context(), "alice"); d.OK {
				t.Errorf("after %s one more passed: %+v", idle, d)
			}
		}
	})
}
