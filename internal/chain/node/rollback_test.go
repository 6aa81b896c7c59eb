package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A change to a far smaller limit that is taken back refills nobody, also if the store goes away before it is made or before it is
// taken back: a smaller limit does not tell how much is used, nor hold it.
func TestRollbackInAnOutageRefillsNobody(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.Quota, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows,
	} {
		for _, before := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(5 * time.Minute) // not at the edge of a day or window
				version := func(events int64) *tidegate.Limit {
					spec := tidegate.Spec{Name: "some", Events: events, Period: 30 * time.Minute, Algorithm: a}
					if a == tidegate.Quota {
						spec.Period, spec.Calendar = 0, tidegate.Day
					}
					return tidegate.MustLimit(spec)
				}
				wide, narrow := version(100), version(10)
				way := &faulty{}
				n := newNode(way, forFew(Options{}))
				if got := spend(t, n, wide, "ann", 99); got != 99 { // and no refusal to remember
					t.Fatalf("%s: %d admitted of 100", a, got)
				}
				ask := func() {
					for range 3 {
						time.Sleep(2 * time.Second) // no refusal is remembered
						if got := spend(t, n, narrow, "ann", 5); got != 0 {
							t.Errorf("%s: %d admitted of 10 when 99 are used", a, got)
						}
					}
				}
				n.Forget() // as a reload does
				if before {
					ask()
				}
				way.set(broken)
				ask()
				n.Forget()
				if got := spend(t, n, wide, "ann", 100); got > 1 {
					t.Errorf("%s, changed before the outage %t: %d more of 100, of which 99 are used", a, before, got)
				}
				if !before && a != tidegate.Quota { // nobody is held for longer than for a debt
					time.Sleep(2*narrow.Period + time.Minute)
					if got := spend(t, n, narrow, "ann", 1); got != 1 {
						t.Errorf("%s: held for more than two periods", a)
					}
				}
				_ = n.Close()
				time.Sleep(2 * time.Second)
			})
		}
	}
}
