package tidegate

import "context"

// Charge is what an admitted request was charged, kept by a front end that may find
// out that nothing came of the request. The zero value is empty. One of Keep and
// Return ends it; it is then used for the next request, by one goroutine at a time.
type Charge struct {
	gate    *Gate
	held    *[]Check
	checks  []Check // all that were made in held
	counted []Check
	taken   taken
}

// EnterCharged is Enter for front ends that can tell when a request never reached its
// destination: c holds what the request was charged until Keep or Return. r must not be
// Reset before that, because keys may be in its memory. A refused request leaves c empty.
func (g *Gate) EnterCharged(ctx context.Context, r *Request, c *Charge) (Decision, *Visit) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	d, counted := g.decide(ctx, r, checks, how{})
	if !d.OK || d.Err != nil {
		g.putChecks(held, checks)
		*c = Charge{}
		return d, nil
	}
	*c = Charge{gate: g, held: held, checks: checks, counted: counted, taken: newTaken(&d, counted)}
	return d, newVisit(ctx, g.store, counted, &d)
}

// Keep leaves everything charged.
func (c *Charge) Keep() {
	if c.gate != nil {
		c.gate.putChecks(c.held, c.checks)
		*c = Charge{}
	}
}

// Return gives back what was charged, except for what the Visit of the request gives
// back: call its End, too, with an Outcome that is Void. An error is the store's, and
// what could not be given back stays charged.
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
