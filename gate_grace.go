package tidegate

import (
	"context"
	"math"
	"slices"
	"time"
)

// concernsGrace reports whether one of checks gives way for a while (see Terms.MaxOver), and d is a
// refusal or leaves nothing.
func concernsGrace(checks []Check, d *Decision) bool {
	if d.Err != nil || d.OK && d.Remaining > 0 {
		return false
	}
	for i := range checks {
		if l := checks[i].Limit; l != nil && l.grace != nil && !checks[i].Advisory {
			return true
		}
	}
	return false
}

// giveWay returns the decision about checks when limits give way for a while; d is the store's
// decision without that. It also prolongs the holds by which a grace ends. It leaves checks as they
// were put to the store for the decision that it returns: limits that gave way only mark. until is set
// if that decision is a refusal that holds only during a grace.
func (g *Gate) giveWay(ctx context.Context, checks []Check, d Decision, how how) (_ Decision, until *graceEnd, err error) {
	if !d.OK {
		d, until, err = g.askAbove(ctx, checks, d, true, func(all []Check) (Decision, error) { return g.ask(ctx, all, how) })
		if err != nil {
			return d, nil, err
		}
	}
	if d.OK && d.Err == nil {
		g.prolongHolds(context.WithoutCancel(ctx), checks, &d)
	}
	return d, until, nil
}

// graceEnd says when a grace ends, and what a request is held to from then on.
type graceEnd struct {
	left    time.Duration // until the end
	checks  []Check       // of the request, as they were before a limit gave way
	above   *Limit        // the limit that gives way
	refused Decision      // the refusal by checks
}

// after returns the RetryAfter, counted from now, of a request that does not pass before the grace is
// over.
func (e *graceEnd) after(ctx context.Context, g *Gate) time.Duration {
	return g.untilNextGrace(ctx, e.checks, e.above, e.refused).RetryAfter
}

// askAbove asks again as long as the limit that refuses may give way; that limit then only marks. If
// begin is set, a request that is admitted in this way begins the grace. The RetryAfter of a refusal
// is the earlier of when the request would pass within its limits and when it would pass above them;
// until is set in the latter case.
func (g *Gate) askAbove(ctx context.Context, checks []Check, refused Decision, begin bool, ask func([]Check) (Decision, error)) (_ Decision, until *graceEnd, _ error) {
	strict := slices.Clone(checks)
	var begins []Check
	var above *Limit // the last that gave way
	d, left := refused, time.Duration(math.MaxInt64)
	for !d.OK && d.Err == nil {
		c := givesWay(checks, d.Limit)
		if c == nil {
			break
		}
		state, ends := g.graceOf(ctx, c)
		above = c.Limit
		if state == graceOver {
			copy(checks, strict)
			return g.untilNextGrace(ctx, strict, above, refused), nil, nil
		}
		left = min(left, ends)
		if begin && state == graceReady {
			begins = append(begins, Check{Key: c.Key, Limit: above.grace.open, Cost: 1, Advisory: true})
		}
		c.Limit, c.Advisory = above.grace.marks, true
		all := append(checks[:len(checks):len(checks)], begins...)
		var err error
		d, err = ask(all)
		copy(checks, all) // Over is written there
		if err != nil {
			return d, nil, err
		}
	}
	sooner := d.RetryAfter < left && (refused.Never || d.RetryAfter < refused.RetryAfter)
	switch {
	case d.OK || d.Err != nil || d.Never || above == nil:
		return d, nil, nil
	case sooner:
		return d, &graceEnd{left, strict, above, refused}, nil
	}
	copy(checks, strict)
	return g.untilNextGrace(ctx, strict, above, refused), nil, nil
}

// givesWay returns the enforced check whose limit is l, or has the counter of l, if that limit gives
// way for a while; otherwise nil. A store that wraps another may return a limit of its own.
func givesWay(checks []Check, l *Limit) *Check {
	for i := range checks {
		c := &checks[i]
		if c.Limit.grace != nil && !c.Advisory && l != nil && (c.Limit == l || c.Limit.identity == l.identity) {
			return c
		}
	}
	return nil
}

// graceState is what a key may do above a limit.
type graceState uint8

const (
	graceOver  graceState = iota // nothing: its grace is over, and no other may begin yet
	graceReady                   // begin a grace
	graceOpen                    // stay above the limit: a grace is under way
)

// graceOf returns the state of the key of c and, for graceOpen, how long the grace still lasts. left
// has no limit for graceReady, and is 0 for graceOver. If the store cannot tell, nothing may pass above
// the limit.
func (g *Gate) graceOf(ctx context.Context, c *Check) (state graceState, left time.Duration) {
	of := c.Limit.grace
	look := []Check{{Key: c.Key, Limit: of.open}, {Key: c.Key, Limit: of.hold, Advisory: true}}
	d, err := g.store.Take(ctx, look, 1)
	switch {
	case err != nil || d.Err != nil || d.Receipt.Origin == OriginLocal: // the counters of one instance do not show graces of others
		return graceOver, 0
	case !d.OK:
		return graceOpen, d.RetryAfter
	case look[1].Over:
		return graceOver, 0
	}
	return graceReady, math.MaxInt64 // until somebody passes
}

// untilNextGrace returns the refusal d of checks while the limit above does not give way. If the
// request would pass in the next grace sooner than within the limit, it lowers RetryAfter to that.
func (g *Gate) untilNextGrace(ctx context.Context, checks []Check, above *Limit, d Decision) Decision {
	held := slices.Clone(checks)
	c := givesWay(held, above)
	if c == nil || max(c.Cost, 1)+c.Floor <= 1 && !d.Never { // it passes as soon as there is any room, before the next grace may begin
		return d
	}
	hold, err := g.store.Take(ctx, []Check{{Key: c.Key, Limit: c.Limit.grace.hold}}, 1)
	if err != nil || hold.OK || !d.Never && d.RetryAfter <= hold.RetryAfter {
		return d
	}
	c.Limit, c.Advisory = c.Limit.grace.marks, true
	if peekingAll(held) >= 0 {
		return d
	}
	rest, err := g.store.Take(ctx, held, 1)
	if err != nil || rest.Err != nil || rest.Never {
		return d
	}
	if wait := max(hold.RetryAfter, rest.RetryAfter); d.Never || wait < d.RetryAfter {
		d.Never, d.RetryAfter, d.ResetAfter = false, wait, max(d.ResetAfter, wait)
	}
	return d
}

// prolongHolds prolongs the hold of every limit that the admitted checks have used up or exceeded:
// until the limit has had room, above the floor, for as long as a grace lasts.
func (g *Gate) prolongHolds(ctx context.Context, checks []Check, d *Decision) {
	for i := range checks {
		c := &checks[i]
		of := c.Limit.grace
		switch {
		case of == nil, c.Cost <= 0:
			continue
		case c.Advisory && c.Over:
		case !c.Advisory && d.Remaining > 0, !held(ctx, g.store, c):
			continue
		}
		prolongHold(ctx, g.store, c)
	}
}

// prolongHold prolongs the hold of the limit of c, unless the limit has room and c was not over it.
func prolongHold(ctx context.Context, store Store, c *Check) {
	of := c.Limit.grace
	room, err := store.Take(ctx, []Check{{Key: c.Key, Limit: of.marks, Floor: c.Floor}}, 1)
	if err != nil || room.OK && !c.Over {
		return
	}
	// If the store is not reached, the next grace may begin earlier.
	_ = store.Adjust(ctx, Receipt{}, []Check{{Key: c.Key, Limit: of.holdFor(room.RetryAfter + of.lasts), Cost: 2}})
}

// held reports whether the key of c has had a grace, and no other may begin yet.
func held(ctx context.Context, store Store, c *Check) bool {
	d, err := store.Take(ctx, []Check{{Key: c.Key, Limit: c.Limit.grace.hold}}, 1)
	return err == nil && !d.OK
}

// prolongHolds prolongs the holds of checks whose true cost is above what they were charged: the
// difference is charged without a check, and may have used up the limit.
func (v *Visit) prolongHolds(checks []Check, o Outcome) {
	for i := range checks {
		c := &checks[i]
		if c.Limit.grace != nil && v.trueCost(c, o) > c.Cost && held(v.ctx, v.store, c) {
			prolongHold(v.ctx, v.store, c)
		}
	}
}
