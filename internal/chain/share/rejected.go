package share

import (
	"context"

	"tidegate.dev/tidegate"
)

// CountRejected asks store about n copies of a request that a layer has refused: about the checks whose limits
// count rejected requests, so that these are counted, and no further than up to a floor. If it fails, they are
// not counted: the request is refused in any case.
func CountRejected(ctx context.Context, store tidegate.Store, checks []tidegate.Check, n int) {
	var all []tidegate.Check
	for _, c := range checks {
		if c.Limit.CountRejected && !c.Advisory && c.Cost > 0 && c.Cost <= c.Limit.Events-c.Floor {
			c.MaxWait = 0
			all = append(all, c)
		}
	}
	if len(all) > 0 {
		_, _ = store.Take(ctx, all, n)
	}
}
