package tidegate

import "context"

// Peek tells what Decide would about a request of cost 1. It charges nothing, starts no
// block, and is not observed.
func (g *Gate) Peek(ctx context.Context, r *Request) Decision {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	defer g.putChecks(held, checks)
	counted, denied := splitAccess(checks)
	switch {
	case denied != nil:
		return Decision{Never: true, Limit: denied, Receipt: Receipt{Origin: OriginRule}}
	case len(counted) == 0:
		return Decision{OK: true, Granted: 1}
	}
	peeking(counted)
	d, err := g.store.Take(ctx, counted, 1)
	if err != nil {
		return g.failed(counted, err)
	}
	d.Soft = d.OK && soft(counted)
	return d
}

// PeekEach calls f for every limit that the request is held to, with what the limit by
// itself would say of a cost of 1; Err is set where the store could not tell. It charges
// nothing. Access rules, and checks that never decide, are left out. f must not keep the check.
func (g *Gate) PeekEach(ctx context.Context, r *Request, f func(Check, Decision)) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
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
