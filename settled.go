package tidegate

import "context"

// withSettled returns checks and, behind them, what is charged to count them as settled from the
// start; checks itself if there is nothing. Those are in the same vector, so that no refusal
// finds one without the other, and what is given back later was charged at the receipt's instant.
// They are advisory: this counter may be fuller than the limit's own, as it counts an outcome from
// when it was known, and must not refuse anybody.
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

// askSettled asks about all, which begins with checks, and charges unasked what had no room in a
// counter of what is settled: the outcome counts, so that it counts there as well.
func (g *Gate) askSettled(ctx context.Context, checks, all []Check, record bool) (Decision, error) {
	d, err := g.askStore(ctx, all, record)
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
