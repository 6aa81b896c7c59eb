package client

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// paceRoom is the part of a period by which calls may be late.
const paceRoom = 32

// Pace returns a limit for a [Provider] that stays below events per period, whichever algorithm the
// API counts by: calls leave evenly spaced, and use 97 % of what the API allows. The rest is for
// calls that arrive late, and so closer to the next ones: 1/32 of the period does not matter. It
// panics if events or period are not those of a valid limit; see [tidegate.MustLimit].
func Pace(events int64, period time.Duration) *tidegate.Limit {
	longer := (period + period/paceRoom).Truncate(time.Microsecond)
	return tidegate.MustLimit(tidegate.Spec{
		Name: fmt.Sprintf("%d per %s", events, period), Events: events, Period: longer,
		Algorithm: tidegate.TokenBucket, Burst: 1,
	})
}
