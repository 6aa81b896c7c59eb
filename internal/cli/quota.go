package cli

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
)

// quotaOf returns what Envoy's quota service makes of a bucket that is described like the request.
func quotaOf(e *rules.Explanation) string {
	var limits []*tidegate.Limit
	leaves := false
	for i := range e.Rules {
		r := &e.Rules[i]
		if !r.Applies || !r.Decides {
			continue
		}
		for j := range r.Checks {
			if c := &r.Checks[j].Check; !c.Advisory && c.Limit != nil {
				limits, leaves = append(limits, c.Limit), leaves || c.Floor > 0
			}
		}
	}
	const denied = "DENY_ALL: "
	switch {
	case e.Ban != nil:
		return denied + "it is refused whatever is used"
	case e.Exempt != "" || len(limits) == 0:
		return "ALLOW_ALL: nothing limits it"
	case len(limits) > 1:
		return denied + "several limits hold, and a bucket of Envoy is held to one token_bucket: give these requests one limit alone"
	}
	switch l := limits[0]; {
	case l.Algorithm == tidegate.Deny:
		return denied + "it is refused whatever is used"
	case l.Algorithm != tidegate.TokenBucket:
		return denied + "the limit is counted by " + l.Algorithm.String() + ", and a token_bucket can be divided: write `{ rate: …, algorithm: token_bucket }`"
	case l.Terms != nil && l.Terms.Handling.Consistency == tidegate.Split:
		return denied + "the limit is split among instances already: remove `consistency: split`"
	case leaves:
		return denied + "a share of the limit is set aside for more important classes, and proxies would take it ahead: remove `set_aside`"
	default:
		return "divided among proxies: " + l.String()
	}
}
