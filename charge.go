package tidegate

import "context"

// Charge is what an admitted request was charged. It is for front ends that may find out
// later that the request never reached its destination. The zero value is empty. Either
// Keep or Return ends it; it can then be used for another request. It must not be used by
// several goroutines at once.
type Charge struct {
	gate    *Gate
	held    *[]Check
	checks  []Check // all checks of the request, in the memory of held
	counted []Check
	taken   taken
}

// EnterCharged is Enter for front ends that can tell when a request never reached its
// destination: c holds what the request was charged until Keep or Return is called. Do not
// Reset r before that, because keys may be in its memory. A refused request leaves c empty.
func (g *Gate) EnterCharged(ctx context.Context, r *Request, c *Charge) (d Decision, _ *Visit) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	counted := g.decide(ctx, r, checks, how{}, &d)
	if !d.OK || d.Err != nil {
		g.putChecks(held, checks)
		*c = Charge{}
		return d, nil
	}
	*c = Charge{gate: g, held: held, checks: checks, counted: counted, taken: newTaken(&d, counted)}
	return d, newVisit(ctx, g.store, counted, &d)
}

// Keep ends c and leaves everything charged.
func (c *Charge) Keep() {
	if c.gate != nil {
		c.gate.putChecks(c.held, c.checks)
		*c = Charge{}
	}
}

// Return ends c and gives back what was charged, except for what the Visit of the request
// gives back: call its End as well, with an Outcome that is Void. If the store returns an
// error, the charge stays.
func (c *Charge) Return(ctx context.Context) error {
	if c.gate == nil {
		return nil
	}
	defer c.Keep()
	var back []Check
	for i := range c.counted {
		check := c.counted[i]
		if check.Cost > 0 && !check.lingers() && !(check.Advisory && check.Over) {
			check.Cost = -check.Cost
			back = append(back, check)
		}
	}
	return c.taken.adjust(context.WithoutCancel(ctx), c.gate.store, back)
}
