package serve

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// Operators are told to take store.was out when the limit that looks back furthest has forgotten what was
// counted before, and not earlier.
func TestFormerShardsAreNotKept(t *testing.T) {
	const day = 24 * time.Hour
	limit := func(s tidegate.Spec) *tidegate.Limit {
		s.Name = "one"
		return tidegate.MustLimit(s)
	}
	f := func(lookback time.Duration, limits ...*tidegate.Limit) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			is := formerShards{since: time.Now()}
			is.setLimits(limits)
			for _, wait := range []time.Duration{0, lookback - 1} {
				time.Sleep(wait)
				if got := is.warnings(2); len(got) > 0 {
					t.Errorf("%v: after %s: %q", limits, time.Since(is.since), got)
				}
			}
			time.Sleep(time.Nanosecond)
			if got := is.warnings(2); len(got) != 1 {
				t.Errorf("%v: after %s: %q", limits, time.Since(is.since), got)
			}
			if got := is.warnings(0); len(got) > 0 {
				t.Errorf("without former shards: %q", got)
			}
		})
	}
	minute := limit(tidegate.Spec{Events: 10, Period: time.Minute, Algorithm: tidegate.FixedWindow})
	f(time.Minute, minute)
	f(time.Minute, limit(tidegate.Spec{Events: 10, Period: time.Second, Burst: 600, Algorithm: tidegate.TokenBucket}))
	f(2*time.Hour, minute, limit(tidegate.Spec{Events: 10, Period: time.Hour, Algorithm: tidegate.SubWindows}))
	f(time.Hour, limit(tidegate.Spec{Events: 10, Period: time.Hour, Algorithm: tidegate.SlidingLog}), minute)
	f(31*day, limit(tidegate.Spec{Events: 10, Calendar: tidegate.Month, Algorithm: tidegate.Quota}))
	var none formerShards
	if got := none.warnings(2); len(got) > 0 {
		t.Errorf("without limits: %q", got)
	}
}
