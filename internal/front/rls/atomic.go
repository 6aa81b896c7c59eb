package rls

import (
	"context"

	"tidegate.dev/tidegate"
)

// decideAtomic charges all descriptors of a call or none, in one step.
func (s *Server) decideAtomic(ctx context.Context, c *call) {
	if c.alone() {
		s.decide(ctx, c)
		return
	}
	denied := false
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.counted() {
			d.asked = true
			if denies(d) {
				d.decision = tidegate.Decision{Never: true, Limit: d.rule.Limits[0], Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}
				denied = denied || d.enforced()
				d.over = true
			} else {
				c.addChecks(d)
			}
		}
	}
	if !denied && len(c.checks) > 0 {
		whole, err := s.o.Store.Take(ctx, c.checks, 1)
		c.tell(&whole, err)
		if err == nil && whole.OK && c.quotasUsedUp() {
			s.returnAll(ctx, c, whole.Receipt)
		}
		s.lookAtEach(ctx, c, err == nil && !whole.OK)
		return
	}
	s.lookAtEach(ctx, c, false)
}

// alone reports whether no two descriptors have to be charged together.
func (c *call) alone() bool {
	n := 0
	for i := range c.descriptors {
		if c.descriptors[i].counted() {
			n++
		}
	}
	return n < 2
}

// enforced reports whether the descriptor alone can refuse the call.
func (d *descriptor) enforced() bool { return !d.rule.Shadow && !d.rule.Quota && !d.rule.Settle }

func (c *call) addChecks(d *descriptor) {
	for _, l := range d.rule.Limits {
		c.checks = append(c.checks, tidegate.Check{Key: d.key, Limit: l, Cost: d.cost, Advisory: !d.enforced(), Unattended: true})
	}
}

// each calls f with every descriptor whose checks are in the vector, and these.
func (c *call) each(f func(d *descriptor, checks []tidegate.Check)) {
	rest := c.checks
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.counted() && !denies(d) && len(rest) > 0 {
			n := len(d.rule.Limits)
			f(d, rest[:n])
			rest = rest[n:]
		}
	}
}

// tell notes what the whole vector was answered.
func (c *call) tell(whole *tidegate.Decision, err error) {
	c.each(func(d *descriptor, checks []tidegate.Check) {
		d.err = err
		d.decision = *whole
		d.decision.Limit = checks[0].Limit
		d.decision.OK = true
		for i := range checks {
			if own := &checks[i]; own.Over || !whole.OK && own.Limit == whole.Limit {
				d.over, d.decision.OK, d.decision.Limit = true, false, own.Limit
			}
		}
	})
}

// quotasUsedUp reports whether there are descriptors in quota mode and all are over.
func (c *call) quotasUsedUp() bool {
	quotas, over := 0, 0
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.counted() && d.rule.Quota && !d.rule.Shadow {
			quotas++
			if d.over {
				over++
			}
		}
	}
	return quotas > 0 && quotas == over
}

// returnAll gives back what was charged, as the quotas refuse.
func (s *Server) returnAll(ctx context.Context, c *call, r tidegate.Receipt) {
	var charged []tidegate.Check
	c.each(func(d *descriptor, checks []tidegate.Check) {
		for _, own := range checks {
			if !own.Over && own.Cost > 0 {
				own.Cost, own.Advisory = -own.Cost, false
				charged = append(charged, own)
			}
		}
	})
	if len(charged) > 0 {
		_ = s.o.Store.Adjust(context.WithoutCancel(ctx), r, charged)
	}
}

// lookAtEach finds out what remains of every descriptor, and if the call was refused, which of
// them are over: a vector is answered for by one of its limits.
func (s *Server) lookAtEach(ctx context.Context, c *call, refused bool) {
	suspects := 0 // that have the limit which refused
	c.each(func(d *descriptor, _ []tidegate.Check) {
		if d.over {
			suspects++
		}
	})
	c.each(func(d *descriptor, checks []tidegate.Check) {
		if d.err != nil {
			return
		}
		wasOver := d.over
		charged := d.decision
		s.take(ctx, d, 0)
		if d.err != nil { // what was decided stands
			d.err, d.decision = nil, charged
			return
		}
		if refused && suspects != 1 {
			wasOver = d.decision.Remaining < max(d.cost, 1)
			d.over = wasOver
		}
		d.decision.OK = !wasOver
		if d.decision.OK {
			d.decision.RetryAfter, d.decision.Never = 0, false
		}
		if d.rule.Settle && wasOver {
			_ = s.o.Store.Adjust(ctx, charged.Receipt, settling(checks))
			d.over, d.decision.OK = false, true
		}
	})
}

func settling(checks []tidegate.Check) []tidegate.Check {
	for i := range checks {
		checks[i].Advisory = false
	}
	return checks
}
