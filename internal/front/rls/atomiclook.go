package rls

import (
	"context"

	"tidegate.dev/tidegate"
)

// lookAtEach finds out what remains of every descriptor, and if the counters refused the call, which
// of them are over: the answer to a vector names only one of its limits.
func (s *Server) lookAtEach(ctx context.Context, c *call, refused bool) {
	suspects := 0 // that have the limit which refused
	c.each(func(_ int, d *descriptor, _ []tidegate.Check) {
		if d.over {
			suspects++
		}
	})
	s.inParallel(c, (*descriptor).charges, func(d *descriptor) { s.look(ctx, d) })
	found := 0 // that are over and refuse
	c.each(func(i int, d *descriptor, _ []tidegate.Check) {
		if d.err != nil {
			return
		}
		d.decision.OK = !d.over
		if d.looked && refused && (suspects != 1 || !d.enforced()) {
			d.decision.OK = d.decision.Remaining >= c.askedUpTo(i)
		}
		if !d.decision.OK && d.enforced() {
			found++
		}
	})
	c.each(func(_ int, d *descriptor, _ []tidegate.Check) {
		switch {
		case d.err != nil:
			return
		case !refused || found > 0 || !d.enforced():
			d.over = !d.decision.OK
		case suspects == 0: // it is one of them
			d.over = true
		}
		if d.decision.OK = !d.over; d.decision.OK {
			d.decision.RetryAfter, d.decision.Never = 0, false
		}
	})
}

// look finds out what remains of a descriptor. If the store does not say, what was decided stands.
func (s *Server) look(ctx context.Context, d *descriptor) {
	if d.err != nil {
		return
	}
	charged := d.decision
	s.take(ctx, d, 0)
	if d.looked = d.err == nil; !d.looked {
		d.err, d.decision = nil, charged
	}
}

// askedUpTo returns how many hits descriptor i and those before it ask of the counters of i.
func (c *call) askedUpTo(i int) (cost int64) {
	for j := range i + 1 {
		if c.descriptors[j].charges() && c.sameCounter(i, j) {
			cost += c.descriptors[j].cost
		}
	}
	return cost
}
