package tidegate

import (
	"context"
	"math"
	"slices"
	"time"
)

// concernsGrace reports whether d is about a limit that gives way for a while: it refuses, or has
// nothing left.
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

// giveWay goes on from d, the answer to checks, if that is a refusal by a limit that gives way for
// a while, and sees to it that the grace ends. Then checks are as they were asked last. until is set
// if the answer holds for as long as a grace lasts.
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

// graceEnd is when limits do not give way any more, and what is refused then.
type graceEnd struct {
	left    time.Duration
	checks  []Check // as they are asked then
	above   *Limit
	refused Decision
}

// after is the wait of a request that comes back when the grace is over.
func (e *graceEnd) after(ctx context.Context, g *Gate) time.Duration {
	return g.untilNextGrace(ctx, e.checks, e.above, e.refused).RetryAfter
}

// askAbove asks again while the limit that refuses may give way: with that limit only marking. A
// grace begins, if begin is set, with the request that is admitted. A refusal is told as what passes
// earlier: the request within its limits, or above them; until is set for the latter.
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

// givesWay returns the enforced check of l, if that is a limit that gives way for a while. A store
// that wraps another may have a limit of its own for the counter.
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
	graceOver  graceState = iota // nothing: it was above for long enough
	graceReady                   // begin to be above
	graceOpen                    // be above, for a while
)

// graceOf returns the state of the key of c, and how long that lasts. If the store cannot tell,
// nothing may pass above the limit.
func (g *Gate) graceOf(ctx context.Context, c *Check) (state graceState, left time.Duration) {
	of := c.Limit.grace
	look := []Check{{Key: c.Key, Limit: of.open}, {Key: c.Key, Limit: of.hold, Advisory: true}}
	d, err := g.store.Take(ctx, look, 1)
	switch {
	case err != nil || d.Err != nil || d.Receipt.Origin == OriginLocal: // what an instance counts by itself does not tell
		return graceOver, 0
	case !d.OK:
		return graceOpen, d.RetryAfter
	case look[1].Over:
		return graceOver, 0
	}
	return graceReady, math.MaxInt64 // until somebody passes
}

// untilNextGrace is the refusal d of checks, while above does not give way. Where its cost has room
// above the limit before it has room within, if ever, it passes when the next grace may begin.
func (g *Gate) untilNextGrace(ctx context.Context, checks []Check, above *Limit, d Decision) Decision {
	held := slices.Clone(checks)
	c := givesWay(held, above)
	if c == nil || max(c.Cost, 1)+c.Floor <= 1 && !d.Never { // has room before it has had room for any time
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

// prolongHolds makes the holds of limits that checks, which were admitted, have used up or passed
// last until these have had room for as long as a grace lasts. What has to remain for others is no
// room.
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

// prolongHold is prolongHolds of a check, unless its limit has room.
func prolongHold(ctx context.Context, store Store, c *Check) {
	of := c.Limit.grace
	room, err := store.Take(ctx, []Check{{Key: c.Key, Limit: of.marks, Floor: c.Floor}}, 1)
	if err != nil || room.OK && !c.Over {
		return
	}
	// If the store is not reached, the next grace may begin earlier.
	_ = store.Adjust(ctx, Receipt{}, []Check{{Key: c.Key, Limit: of.holdFor(room.RetryAfter + of.lasts), Cost: 2}})
}

// held reports whether a grace of the key of c has begun, and no other may begin yet.
func held(ctx context.Context, store Store, c *Check) bool {
	d, err := store.Take(ctx, []Check{{Key: c.Key, Limit: c.Limit.grace.hold}}, 1)
	return err == nil && !d.OK
}

// prolongHolds is that of a Gate for checks that turned out to cost more than they were charged: the
// surplus, which nobody was asked about, may have used up the limit.
func (v *Visit) prolongHolds(checks []Check, o Outcome) {
	for i := range checks {
		c := &checks[i]
		if c.Limit.grace != nil && v.trueCost(c, o) > c.Cost && held(v.ctx, v.store, c) {
			prolongHold(v.ctx, v.store, c)
		}
	}
}
