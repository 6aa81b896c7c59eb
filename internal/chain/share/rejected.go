package share

import "tidegate.dev/tidegate"

// CountsRejected returns what to charge for n copies of a request that a layer has refused: the checks
// whose limits count rejected requests.
func CountsRejected(checks []tidegate.Check, n int) (all []tidegate.Check) {
	for _, c := range checks {
		if c.Limit.CountRejected && !c.Advisory && c.Cost > 0 && c.Cost <= c.Limit.Events-c.Floor {
			c.Cost = min(c.Cost*int64(n), c.Limit.Events)
			all = append(all, c)
		}
	}
	return all
}
