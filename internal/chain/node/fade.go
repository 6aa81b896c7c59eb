package node

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// fade returns how many of the events used at the instant from still count at now. A fixed
// window forgets all of them at its end. Other limits drain like a bucket: that is exact for
// buckets, and right for sliding windows if events came evenly.
func fade(l *tidegate.Limit, used float64, from, now time.Time) float64 {
	switch l.Algorithm {
	case tidegate.FixedWindow, tidegate.Quota:
		if algo.SpanAt(l, algo.Instant(from)) != algo.SpanAt(l, algo.Instant(now)) {
			return 0
		}
		return used
	}
	events := float64(l.Events)
	if !isBucket(l) { // what another version of the limit holds leaves the window as well
		events = max(events, used)
	}
	drained := float64(max(now.Sub(from), 0)) / float64(l.Period) * events
	return max(0, used-drained)
}
