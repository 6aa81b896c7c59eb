package tidegate

import (
	"context"
	"slices"
)

// Peek tells what Decide would about a request. It charges nothing, starts no block, and
// is not observed.
func (g *Gate) Peek(ctx context.Context, r *Request) Decision {
	held := g.checks.Get().(*[]Check)
	checks := g.look(r, (*held)[:0])
	defer g.putChecks(held, checks)
	counted, denied := splitAccess(checks)
	switch {
	case denied != nil:
		return refusalBy(denied)
	case len(counted) == 0:
		return Decision{OK: true, Granted: 1}
	}
	asked := slices.Clone(counted)
	if never := peekingAll(counted); never >= 0 {
		d := g.peekOne(ctx, &asked[never])
		d.OK, d.Never, d.Granted, d.RetryAfter = false, true, 0, 0
		return d
	}
	ask := func(all []Check) (Decision, error) { return g.store.Take(ctx, all, 1) }
	d, err := ask(counted)
	if err == nil && !d.OK && concernsGrace(counted, &d) {
		d, _, err = g.askAbove(ctx, counted, d, false, ask)
	}
	if err != nil {
		return g.failed(counted, err)
	}
	d.Soft = d.OK && soft(counted)
	for i := range counted {
		// The floors were raised by all of the cost but one event; add that to what remains.
		c := &asked[i]
		if rest := counted[i].Floor - c.Floor; c.Limit == d.Limit && !c.Advisory && rest > 0 {
			if d.OK {
				d.Remaining += rest
			} else {
				d.Remaining = min(g.peekOne(ctx, c).Remaining, rest)
			}
			break
		}
	}
	return d
}

// peekOne returns where the counter of c stands for requests with the floor of c.
func (g *Gate) peekOne(ctx context.Context, c *Check) Decision {
	alone := []Check{*c}
	peeking(alone)
	d, err := g.store.Take(ctx, alone, 1)
	if err != nil {
		return Decision{Limit: c.Limit}
	}
	return d
}

// peekingAll makes checks peek for room for their whole cost: a peek asks for one event, so the
// rest of the cost is added to the floor. It returns the index of the first check whose cost can
// never fit, or -1. It leaves out limits that give way for a while: the cost may fit above them.
func peekingAll(checks []Check) (never int) {
	never = -1
	for i := range checks {
		c := &checks[i]
		if rest := min(c.Cost-1, MaxCount); rest > 0 && c.Limit != nil && c.Limit.Algorithm != Concurrency {
			if c.Floor += rest; c.Floor >= c.Limit.Capacity() && !c.Advisory && c.Limit.grace == nil && never < 0 {
				never = i
			}
		}
	}
	peeking(checks)
	return never
}

// PeekEach calls f for every limit that the request is held to, with what the limit by
// itself would say of a cost of 1; Err is set where the store could not tell. It charges
// nothing. Access rules, and checks that never decide, are left out. f must not keep the check.
func (g *Gate) PeekEach(ctx context.Context, r *Request, f func(Check, Decision)) {
	held := g.checks.Get().(*[]Check)
	checks := g.look(r, (*held)[:0])
	defer g.putChecks(held, checks)
	counted, _ := splitAccess(checks)
	peeking(counted)
	for i := range counted {
		if counted[i].Advisory {
			continue
		}
		d, err := g.store.Take(ctx, counted[i:i+1], 1)
		if err != nil {
			d = Decision{Limit: counted[i].Limit, Err: err}
		}
		f(counted[i], d)
	}
}

func peeking(checks []Check) {
	for i := range checks {
		c := &checks[i]
		c.Cost, c.MaxWait, c.Estimate, c.Unattended = 0, 0, false, true
	}
}

// look returns the checks of a request that is not charged.
func (g *Gate) look(r *Request, dst []Check) []Check {
	was := r.Looking
	r.Looking = true
	defer func() { r.Looking = was }()
	return g.matcher.Match(r, dst)
}
