package redis

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// longestLimits are limits of each algorithm whose counters last as long as any: whole days, and
// as many events as there may be.
func longestLimits() []*tidegate.Limit {
	const day = 24 * time.Hour
	limit := func(a tidegate.Algorithm, events int64, period time.Duration, burst int64, parts int) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{
			Name: a.String(), Scope: "user", Algorithm: a, Events: events, Period: period, Burst: burst, Parts: parts,
		})
	}
	raw := limit(tidegate.TokenBucket, 1, day, 365, 0).Spec
	raw.Name, raw.RawTime = "raw", true
	return []*tidegate.Limit{
		limit(tidegate.TokenBucket, 1, day, 365, 0),
		limit(tidegate.TokenBucket, 1_000_003, 4*day, 91_000_000, 0),
		tidegate.MustLimit(raw),
		limit(tidegate.LeakyBucket, 1, day, 365, 0),
		limit(tidegate.LeakyBucket, 700_001, day, 256_200_365, 0), // events that are rounded up to ticks
		limit(tidegate.FixedWindow, 1000, tidegate.MaxPeriod, 0, 0),
		limit(tidegate.FixedWindow, tidegate.MaxCount, tidegate.MaxPeriod, 0, 0),
		limit(tidegate.SlidingWindow, 1000, tidegate.MaxPeriod, 0, 0),
		limit(tidegate.SlidingWindow, tidegate.MaxCount, tidegate.MaxPeriod, 0, 0),
		limit(tidegate.SubWindows, 1000, tidegate.MaxPeriod, 0, 1),
		limit(tidegate.SubWindows, tidegate.MaxCount, tidegate.MaxPeriod, 0, 7),
		limit(tidegate.SubWindows, 1000, tidegate.MaxPeriod, 0, tidegate.MaxParts),
		limit(tidegate.SlidingLog, 1000, tidegate.MaxPeriod, 0, 0),
		limit(tidegate.Concurrency, 10, tidegate.MaxPeriod, 0, 0),
		tidegate.MustLimit(tidegate.Spec{Name: "quota", Scope: "user", Algorithm: tidegate.Quota, Events: 1000, Calendar: tidegate.Year, Zone: "UTC"}),
	}
}

// longest is how long a counter of l lasts once it is used up.
func longest(l *tidegate.Limit) time.Duration {
	switch {
	case isBucket(l):
		law := algo.NewBucketLaw(l)
		return algo.Duration((law.Tau + algo.Micro - 1) / algo.Micro * algo.Micro)
	case l.Algorithm == tidegate.Quota:
		return tidegate.MaxPeriod
	}
	return l.Period
}

// Whatever instances owe that do not know of each other, scripts write no more than a law allows, and
// however far the clock is set back then, what they answer is believed.
func TestTheLongestStatesAreBelieved(t *testing.T) {
	t.Parallel()
	start := time.UnixMicro(45 * tidegate.MaxPeriod.Microseconds()) // where periods and their parts begin
	now := start
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Socket}, pretend: func() time.Time { return now }})
	for _, l := range longestLimits() {
		long := longest(l)
		for _, back := range []time.Duration{0, long - time.Microsecond, long, long + time.Microsecond, 2 * long, 3 * long} {
			for _, lease := range []time.Duration{0, 100 * time.Millisecond} {
				for how, owe := range owing {
					now = start
					check := tidegate.Check{Key: fmt.Sprint(l, l.Parts, back, lease, how), Limit: l, Cost: 1}
					takeBeside(t, s, check, int(min(l.Capacity(), 1<<20)), lease)
					most := owe(t, s, check)
					// Until it is as good as new, which is when what is used or owed has left.
					d := mustTake(t, s, 1, check)
					if isBucket(l) && d.ResetAfter > most || d.ResetAfter > max(most, 2*long) {
						t.Errorf("%s after %s: %+v, want %s at most", l, how, d, most)
					}
					now = start.Add(-back)
					for _, cost := range []int64{l.Capacity(), 0, 1} {
						for _, wait := range []time.Duration{0, time.Hour} {
							check.Cost, check.MaxWait = cost, wait
							if _, err := s.Take(t.Context(), []tidegate.Check{check}, 1); err != nil {
								t.Errorf("%s after %s, on a lease of %s, set back by %s: a cost of %d: %v", l, how, lease, back, cost, err)
							}
							takeBeside(t, s, check, 2, 0)
						}
					}
				}
			}
		}
	}
}

// takeBeside takes n copies in a batch beside the check of another key.
func takeBeside(t *testing.T, s *Store, c tidegate.Check, n int, lease time.Duration) {
	t.Helper()
	other := tidegate.Check{Key: "beside " + c.Key, Limit: c.Limit, Cost: 1}
	asks := []chain.Ask{{Checks: []tidegate.Check{c}, Copies: n, Lease: lease}, {Checks: []tidegate.Check{other}, Copies: 1}}
	if err := in(s).TakeBatch(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	for _, a := range asks {
		if a.Err != nil {
			t.Errorf("%s in a batch: %v", a.Checks[0].Key, a.Err)
		}
	}
}

// owing has ways to charge more to a counter than it holds; each returns how long that may last.
var owing = map[string]func(*testing.T, *Store, tidegate.Check) time.Duration{
	"nothing": func(_ *testing.T, _ *Store, c tidegate.Check) time.Duration { return longest(c.Limit) },
	"a debt": func(t *testing.T, s *Store, c tidegate.Check) time.Duration {
		c.Cost = c.Limit.Capacity()
		for range 4 {
			if err := s.Adjust(t.Context(), tidegate.Receipt{}, []tidegate.Check{c}); err != nil {
				t.Fatal(err)
			}
		}
		return 2 * longest(c.Limit)
	},
	"posts": func(t *testing.T, s *Store, c tidegate.Check) time.Duration {
		c.Cost = c.Limit.Capacity()
		for boot := range uint64(8) {
			if isBucket(c.Limit) { // versions of another pace, by turns
				spec := c.Limit.Spec
				spec.Events ^= 1 << 21
				c.Limit = tidegate.MustLimit(spec)
			}
			if err := in(s).Post(t.Context(), chain.Post{Boot: [2]uint64{boot, 1}, Number: 1, Check: c}); err != nil {
				t.Fatal(err)
			}
		}
		return 2 * tidegate.MaxRefill
	},
}
