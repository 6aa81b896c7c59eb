package tidegate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// flood makes 100 debtors, lets keys that nobody has seen spend cost of 10, and
// returns how many debtors are admitted again.
func flood(t *testing.T, store *memory.Store, l *tidegate.Limit, keys int, cost int64) (again, refused int) {
	lim := tidegate.New(store, l)
	for i := range 100 {
		lim.AllowN(t.Context(), fmt.Sprint("debtor ", i), 10)
	}
	for i := range keys {
		d := lim.AllowN(t.Context(), fmt.Sprint("fresh ", i), cost)
		if errors.Is(d.Err, tidegate.ErrFull) && !d.OK && d.RetryAfter > 0 {
			refused++
		} else if !d.OK {
			t.Fatalf("fresh key %d: %+v", i, d)
		}
	}
	for i := range 100 {
		if lim.Peek(t.Context(), fmt.Sprint("debtor ", i)).OK {
			again++
		}
	}
	return again, refused
}

// The full size of this is `make flood`.
func TestTrap14FloodOfFreshKeys(t *testing.T) {
	testdep.SkipUnderRace(t)
	algorithms := []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingLog, tidegate.FixedWindow, tidegate.SlidingWindow}
	keys, maxBytes := 60_000, int64(1<<20) // at 24 bytes and more, they do not fit
	if testdep.RaceEnabled {               // which makes it fifty times slower, and nothing here runs at once
		algorithms, keys, maxBytes = algorithms[:2], 3_000, 1<<16
	}
	f := func(s tidegate.Spec, keys int, maxBytes, cost int64, check func(s memory.Stats, again, refused int) bool) {
		t.Helper()
		s.Events, s.Period = 10, 24*time.Hour
		l := tidegate.MustLimit(s)
		store := memory.Open(memory.Config{MaxBytes: maxBytes})
		again, refused := flood(t, store, l, keys, cost)
		stats := store.Stats()
		if stats.Bytes > maxBytes {
			t.Errorf("%s: %d bytes are held, more than %d", l, stats.Bytes, maxBytes)
		}
		if !check(stats, again, refused) {
			t.Errorf("%s, each spends %d: %d debtors are admitted again, %d fresh keys were refused, %+v", l, cost, again, refused, stats)
		}
	}
	for _, a := range algorithms {
		// Keys that hold nobody back go first: no debtor is forgotten.
		for _, on := range []tidegate.OnFull{tidegate.EvictLeast, tidegate.RefuseNew} {
			f(tidegate.Spec{Algorithm: a, OnFull: on}, keys, maxBytes, 1, func(s memory.Stats, again, refused int) bool {
				return again == 0 && refused == 0 && s.Evicted > 0 && s.Forgotten == s.Evicted && s.RefusedFull == 0
			})
		}
		// All of them are debtors. Something has to give: it is as OnFull says,
		// and it is counted.
		f(tidegate.Spec{Algorithm: a}, keys, maxBytes, 10, func(s memory.Stats, again, refused int) bool {
			return refused == 0 && s.Forgotten > 0 && int64(again) <= s.Forgotten && s.RefusedFull == 0
		})
		f(tidegate.Spec{Algorithm: a, OnFull: tidegate.RefuseNew}, 2_500, 1<<16, 10, func(s memory.Stats, again, refused int) bool {
			return again == 0 && refused > 0 && s.Forgotten == 0 && s.RefusedFull == int64(refused)
		})
	}
}

// With room for everybody, the first of many clients finds what it left.
func TestTrap14NobodyIsForgottenWhileThereIsRoom(t *testing.T) {
	keys := 60_000
	if testdep.RaceEnabled {
		keys = 6_000
	}
	store := memory.New()
	again, refused := flood(t, store, bucket(10, 24*time.Hour), keys, 1)
	if s := store.Stats(); again != 0 || refused != 0 || s.Evicted != 0 || s.Keys != int64(keys+100) {
		t.Errorf("%d debtors are admitted again, %d refused, %+v", again, refused, s)
	}
}
