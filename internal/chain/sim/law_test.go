package sim

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Each law admits what its limit does, and no more.
func TestLaws(t *testing.T) {
	const s = int64(time.Second)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	f := func(a tidegate.Algorithm, burst int64, want []bool, at ...int64) {
		t.Helper()
		spec := tidegate.Spec{Events: 4, Period: 4 * time.Second, Algorithm: a, Burst: burst}
		if a == tidegate.SubWindows {
			spec.Parts = 4
		}
		law := newLaw([]*tidegate.Limit{tidegate.MustLimit(spec)})
		for i, x := range at {
			if over := law.admit(start+x, 1); over <= 0 != want[i] {
				t.Errorf("%s at %s: over by %g, want within %t", a, time.Duration(x), over, want[i])
			}
		}
	}
	yes, no := true, false
	f(tidegate.TokenBucket, 2, []bool{yes, yes, no}, 0, 0, s/2)
	f(tidegate.TokenBucket, 2, []bool{yes, yes, yes, yes, no}, 0, 0, s, 2*s, 2*s+s/2)
	f(tidegate.LeakyBucket, 2, []bool{yes, no}, 0, s/2)
	f(tidegate.LeakyBucket, 2, []bool{yes, yes, yes, no}, 0, s, 5*s, 5*s+s/2)
	f(tidegate.FixedWindow, 0, []bool{yes, yes, yes, yes, yes}, 3*s, 3*s, 3*s, 3*s, 4*s)
	f(tidegate.FixedWindow, 0, []bool{yes, yes, yes, yes, no}, 0, 1, 2, 3, 4*s-1)
	f(tidegate.SlidingLog, 0, []bool{yes, yes, yes, yes, no, no}, 3*s, 3*s, 3*s, 3*s, 4*s, 7*s-s/1000)
	f(tidegate.SlidingLog, 0, []bool{yes, yes, yes, yes, yes}, 3*s, 3*s, 3*s, 3*s, 7*s)
	f(tidegate.SlidingWindow, 0, []bool{yes, yes, yes, yes, yes, yes, no}, 0, 0, 0, 0, 6*s-s/1000, 6*s-s/1000, 6*s-s/1000)
	f(tidegate.SubWindows, 0, []bool{yes, yes, yes, yes, no}, 3*s, 3*s, 3*s, 3*s, 6*s+s/2)
	f(tidegate.SubWindows, 0, []bool{yes, yes, yes, yes, yes, yes, no}, 3*s, 3*s, 3*s, 3*s, 7*s+s/2-s/1000, 7*s+s/2-s/1000, 7*s+s/2-s/1000)
}

// Of two versions the wider one counts.
func TestLawOfVersions(t *testing.T) {
	law := newLaw([]*tidegate.Limit{bucket("x", 1, 1), bucket("x", 1, 3), bucket("x", 2, 2)})
	for i, within := range []bool{true, true, true, false} {
		if over := law.admit(int64(i), 1); over <= 0 != within {
			t.Errorf("admission %d: over by %g", i, over)
		}
	}
}

// A calendar has periods of its own: they begin at midnight of a zone, on Mondays, on a day of
// the month or of January.
func TestCalendarLaw(t *testing.T) {
	f := func(spec tidegate.Spec, last, next string) {
		t.Helper()
		spec.Algorithm, spec.Events = tidegate.Quota, 1
		l := tidegate.MustLimit(spec)
		at := func(text string) int64 {
			when, err := time.Parse(time.DateTime, text)
			if err != nil {
				t.Fatal(err)
			}
			return when.UnixNano()
		}
		law := newLaw([]*tidegate.Limit{l})
		law.admit(at(last), 1)
		if over := law.admit(at(last)+1, 1); over != 1 {
			t.Errorf("%s: over by %g in one period", l, over)
		}
		if over := law.admit(at(next), 1); over != 0 {
			t.Errorf("%s: over by %g in another", l, over)
		}
	}
	f(tidegate.Spec{Calendar: tidegate.Day}, "2026-03-01 23:59:59", "2026-03-02 00:00:00")
	f(tidegate.Spec{Calendar: tidegate.Day, Zone: "Asia/Tokyo"}, "2026-03-01 14:59:59", "2026-03-01 15:00:00")
	f(tidegate.Spec{Calendar: tidegate.Week}, "2026-03-01 23:59:59", "2026-03-02 00:00:00")
	f(tidegate.Spec{Calendar: tidegate.Month}, "2026-02-28 23:59:59", "2026-03-01 00:00:00")
	f(tidegate.Spec{Calendar: tidegate.Month, Anchor: 31}, "2026-02-27 23:59:59", "2026-02-28 00:00:00")
	f(tidegate.Spec{Calendar: tidegate.Month, Anchor: 15}, "2026-01-14 23:59:59", "2026-01-15 00:00:00")
	f(tidegate.Spec{Calendar: tidegate.Year}, "2026-12-31 23:59:59", "2027-01-01 00:00:00")
	f(tidegate.Spec{Calendar: tidegate.Year, Anchor: 15}, "2026-01-14 23:59:59", "2026-01-15 00:00:00")
	// December goes on in January where months begin later.
	l := newLaw([]*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.Quota, Events: 1, Calendar: tidegate.Month, Anchor: 15})})
	l.admit(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC).UnixNano(), 1)
	if over := l.admit(time.Date(2027, 1, 1, 1, 0, 0, 0, time.UTC).UnixNano(), 1); over != 1 {
		t.Errorf("over by %g in one month from the 15th on", over)
	}
}
