package rls

import (
	"context"
	"sync"

	"tidegate.dev/tidegate"
)

// decideAtomic charges all descriptors of a call or none, in one step. What looks only is not a part
// of that step, and what gives hits back does so after it, unless the call is refused.
func (s *Server) decideAtomic(ctx context.Context, c *call) {
	if c.alone() {
		s.decide(ctx, c)
		return
	}
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.charges() {
			d.asked = true
			c.addChecks(d)
		}
	}
	s.inParallel(c, (*descriptor).looks, func(d *descriptor) { s.one(ctx, d) })
	denied := c.deniedByLooks()
	refused := false // by the counters
	if !denied && len(c.checks) > 0 {
		whole, err := s.o.Store.Take(ctx, c.checks, 1)
		c.tell(&whole, err)
		refused = err == nil && !whole.OK
		if err == nil && whole.OK && c.quotasUsedUp() {
			s.returnAll(ctx, c, whole.Receipt)
			denied = true
		}
	} else if !denied {
		denied = c.quotasUsedUp()
	}
	s.lookAtEach(ctx, c, refused)
	s.settleOver(ctx, c, refused || denied)
	s.giveBackAll(ctx, c, refused || denied)
}

// charges reports whether a descriptor is charged in one step with the others.
func (d *descriptor) charges() bool {
	return d.counted() && d.cost > 0 && !d.negative && !denies(d)
}

// looks reports whether a descriptor charges nothing, and can refuse the call.
func (d *descriptor) looks() bool { return d.counted() && (d.cost == 0 || denies(d)) }

// givesBack reports whether a descriptor gives hits back.
func (d *descriptor) givesBack() bool {
	return d.counted() && d.cost > 0 && d.negative && !denies(d)
}

// deniedByLooks reports whether a descriptor that looks refuses the call.
func (c *call) deniedByLooks() bool {
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.looks() && d.over && !d.rule.Shadow && !d.rule.Quota {
			return true
		}
	}
	return false
}

// inParallel calls do for the descriptors for which of is true, at the same time if each takes a round
// trip.
func (s *Server) inParallel(c *call, of func(*descriptor) bool, do func(*descriptor)) {
	var all sync.WaitGroup
	for i := range c.descriptors {
		d := &c.descriptors[i]
		switch {
		case !of(d):
		case s.o.Far:
			all.Go(func() {
				defer s.recovered(func(err error) { d.err = err })
				do(d)
			})
		default:
			do(d)
		}
	}
	all.Wait()
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

// each calls f for every descriptor whose checks are in the vector, with its index and these checks.
func (c *call) each(f func(i int, d *descriptor, checks []tidegate.Check)) {
	rest := c.checks
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.charges() {
			n := len(d.rule.Limits)
			f(i, d, rest[:n])
			rest = rest[n:]
		}
	}
}

// tell sets the decisions of the descriptors by the answer to the whole vector.
func (c *call) tell(whole *tidegate.Decision, err error) {
	c.each(func(_ int, d *descriptor, checks []tidegate.Check) {
		d.err = err
		d.decision = *whole
		d.decision.Limit = checks[0].Limit
		d.decision.OK = true
		for i := range checks {
			if own := &checks[i]; whole.OK && own.Over || !whole.OK && own.Limit == whole.Limit {
				d.over, d.decision.OK, d.decision.Limit = true, false, own.Limit
			}
		}
	})
}

// quotasUsedUp reports whether there are descriptors in quota mode and all are over.
func (c *call) quotasUsedUp() bool {
	quotas, over := 0, 0
	for i := range c.descriptors {
		if d := &c.descriptors[i]; d.quota() {
			quotas++
			if d.over && !d.rule.Shadow {
				over++
			}
		}
	}
	return quotas > 0 && quotas == over
}

// returnAll gives back what was charged, because all descriptors in quota mode are over.
func (s *Server) returnAll(ctx context.Context, c *call, r tidegate.Receipt) {
	var charged []tidegate.Check
	c.each(func(_ int, _ *descriptor, checks []tidegate.Check) {
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

// settleOver admits the descriptors that are over and whose rules settle. Their hits are charged all the
// same, unless nothing is set: then the call is refused, and charges nothing.
func (s *Server) settleOver(ctx context.Context, c *call, nothing bool) {
	c.each(func(_ int, d *descriptor, checks []tidegate.Check) {
		if !d.rule.Settle || !d.over || d.err != nil {
			return
		}
		if !nothing {
			_ = s.o.Store.Adjust(ctx, d.decision.Receipt, settling(checks))
			d.decision.Remaining = 0
		}
		d.over, d.decision.OK, d.decision.Never, d.decision.RetryAfter = false, true, false, 0
	})
}

func settling(checks []tidegate.Check) []tidegate.Check {
	for i := range checks {
		checks[i].Advisory = false
	}
	return checks
}

// giveBackAll returns the hits of descriptors that give some back. If nothing is set, the call is
// refused, and it only looks at them.
func (s *Server) giveBackAll(ctx context.Context, c *call, nothing bool) {
	for i := range c.descriptors {
		d := &c.descriptors[i]
		switch {
		case !d.givesBack():
		case nothing:
			d.asked = true
			s.take(ctx, d, 0)
			d.decision.OK, d.decision.Never, d.decision.RetryAfter = true, false, 0
		default:
			s.one(ctx, d)
		}
	}
}
