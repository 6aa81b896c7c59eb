package tidegate

import "context"

// withSettled returns checks followed by checks that charge the counters of Limit.Settled, or
// checks itself if there is none to charge. All are in one vector, so that both counters are
// charged or neither, at the same instant. The added checks are advisory: their counter counts a
// request from when its outcome was known, so it may be fuller than the limit's own, and must not
// refuse anybody.
func withSettled(checks []Check) []Check {
	all := checks
	for i := range checks {
		c := &checks[i]
		if !c.unsettled() || c.Cost <= 0 {
			continue
		}
		if len(all) == len(checks) {
			all = append(make([]Check, 0, 2*len(checks)), checks...)
		}
		all = append(all, Check{Key: c.Key, Limit: c.Limit.settled, Cost: c.Cost, Advisory: true})
	}
	return all
}

// askSettled asks about all, which is checks with those of withSettled. What had no room in a
// counter of Limit.Settled is charged there nevertheless, since the request was admitted.
func (g *Gate) askSettled(ctx context.Context, checks, all []Check, recorded []bool) (Decision, error) {
	d, err := g.ask(ctx, all, how{recorded: recorded})
	copy(checks, all) // Over is written there
	if err != nil || !d.OK || d.Err != nil {
		return d, err
	}
	var over []Check
	for _, c := range all[len(checks):] {
		if c.Over {
			over = append(over, Check{Key: c.Key, Limit: c.Limit, Cost: c.Cost})
		}
	}
	if len(over) > 0 {
		// If the store is not reached, a refused caller is not blocked, only refused.
		_ = g.store.Adjust(context.WithoutCancel(ctx), d.Receipt, over)
	}
	return d, nil
}
