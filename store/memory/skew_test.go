package memory

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A wall clock that was stepped since the start, in steps of a tenth and a bit from two windows back to two ahead, and a
// restart: by every algorithm the restored store leaves at any time what the same store without a restart leaves.
func TestRestoreAfterStepsOfTheWallClock(t *testing.T) {
	testdep.SkipUnderRace(t)
	const window, year = 60 * time.Minute, 365 * 24 * time.Hour
	for _, a := range stateful {
		spec := specOf("limit", a, 1000, window, tidegate.EvictLeast)
		if a == tidegate.SubWindows {
			spec.Parts = 6
		}
		l := tidegate.MustLimit(spec)
		steps := []time.Duration{-20 * year, 20 * year} // a machine may start without knowing the time
		for tenths := -20; tenths <= 20; tenths++ {
			steps = append(steps, window*time.Duration(tenths)/10)
		}
		for _, step := range steps {
			for _, odd := range []time.Duration{0, 2*time.Millisecond + 1700*time.Nanosecond} {
				t.Run(fmt.Sprintf("%s/%s", a, step+odd), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { restoreAfterStep(t, l, step+odd, odd == 0) })
				})
			}
		}
	}
}

// restoreAfterStep compares a store whose wall clock was stepped with the one that is restored from its snapshot, until
// all is unused again. If unseen is set, the store has not looked at the wall clock since the step.
func restoreAfterStep(t *testing.T, l *tidegate.Limit, step time.Duration, unseen bool) {
	const apart = 3 * time.Minute
	left := func(s *Store) int64 {
		d, err := s.Take(context.Background(), []tidegate.Check{{Key: "key", Limit: l, MaxWait: farAhead}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return d.Remaining
	}
	s := Open(Config{})
	s.clock.base -= algo.Ticks(step) // as if the wall clock had been stepped
	for i := range 31 {
		cost := int64(25)
		if i == 30 { // by now a bucket has drained the others
			cost = 200
		}
		d, err := s.Take(context.Background(), []tidegate.Check{{Key: "key", Limit: l, Cost: cost, MaxWait: farAhead}}, 1)
		if err != nil || !d.OK {
			t.Fatal(d, err)
		}
		if i < 30 {
			time.Sleep(apart)
		}
	}
	if unseen {
		s.clock.skew.Store(0)
		s.clock.synced.Store(s.clock.now())
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := s.Snapshot(path); err != nil {
		t.Fatal(err)
	}
	r, err := Restore(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 80 {
		if was, now := left(s), left(r); now != was {
			t.Fatalf("after %s, %d are left by the restored store, and %d by the other", time.Duration(i)*apart, now, was)
		}
		time.Sleep(apart)
	}
}
