package quotafilter

import (
	"slices"
	"time"
)

// Above returns how many of the events are above a token bucket of a rate per second and a
// burst, and by how many tokens at most. Times come in any order, and are sorted.
func Above(times []time.Duration, perSecond, burst float64) (events int, most float64) {
	const rounding = 1e-6
	slices.Sort(times)
	level, last := 0.0, time.Duration(0)
	for _, t := range times {
		level = max(level-perSecond*(t-last).Seconds(), 0) + 1
		last = t
		if over := level - burst; over > rounding*burst {
			events++
			most = max(most, over)
		}
	}
	return events, most
}
