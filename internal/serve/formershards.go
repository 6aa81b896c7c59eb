package serve

import (
	"fmt"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// formerShards tells when counts on former shards no longer matter, as far as this instance knows:
// once it has had them for as long as its limits look back.
type formerShards struct {
	since    time.Time
	lookback atomic.Int64 // of the limits in force, in ns
}

// setLimits sets the limits in force.
func (f *formerShards) setLimits(all []*tidegate.Limit) {
	longest := time.Duration(0)
	for _, l := range all {
		longest = max(longest, lookbackOf(l))
	}
	f.lookback.Store(int64(longest))
}

// warnings returns warnings for operators; none if there are no former shards.
func (f *formerShards) warnings(shards int) []string {
	lookback := time.Duration(f.lookback.Load())
	if shards == 0 || lookback == 0 || time.Since(f.since) < lookback {
		return nil
	}
	return []string{fmt.Sprintf("store.was has been set for longer than any limit looks back (%s), and keys that have moved are asked about twice: remove it once all instances say so", lookback)}
}

// lookbackOf returns how long an event that a limit counted can matter.
func lookbackOf(l *tidegate.Limit) time.Duration {
	const day = 24 * time.Hour
	switch l.Algorithm {
	case tidegate.Deny:
		return 0
	case tidegate.Quota:
		return map[tidegate.Calendar]time.Duration{tidegate.Day: day, tidegate.Week: 7 * day, tidegate.Month: 31 * day, tidegate.Year: 366 * day}[l.Calendar]
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		return time.Duration(float64(l.Period) * float64(l.Capacity()) / float64(max(l.Events, 1)))
	case tidegate.SlidingWindow, tidegate.SubWindows:
		return 2 * l.Period
	}
	return l.Period
}
