package tidegate

import (
	"context"
	"time"
)

// how says how a request is charged.
type how struct {
	// recorded, if not nil, says which checks are charged to a record of the store, by
	// Reserver.Reserve. For checks that are added to these, it says nothing.
	recorded []bool
	settled  bool // what may be given back is charged as settled as well; see Limit.Settled
}

// decide decides about r and writes the answer into d. It returns the checks without access rules: those
// that the store is asked about, unless an access rule refuses.
func (g *Gate) decide(ctx context.Context, r *Request, checks []Check, how how, d *Decision) (counted []Check) {
	counted, denied := splitAccess(checks)
	switch {
	case denied != nil:
		*d = refusalBy(denied)
	case len(counted) == 0:
		*d = Decision{OK: true, Granted: 1}
	default:
		g.take(ctx, counted, how, d)
	}
	if g.observe != nil {
		g.observe(r, checks, *d)
	}
	return counted
}

// splitAccess moves the checks of access rules behind the others, and returns the others. denied is
// the limit of the first enforced access rule that does not shed; if there is none, of the first that
// sheds; nil if no access rule refuses. Advisory access rules are marked as Over.
func splitAccess(checks []Check) (counted []Check, denied *Limit) {
	n := 0
	for i := range checks {
		c := &checks[i]
		switch {
		case c.Limit == nil || c.Limit.Algorithm != Deny:
			if n != i {
				checks[n], checks[i] = checks[i], checks[n]
			}
			n++
		case c.Advisory:
			c.Over = true
		case denied == nil || denied.Sheds() && !c.Limit.Sheds():
			denied = c.Limit
		}
	}
	return checks[:n], denied
}

// refusalBy returns the refusal by an access rule.
func refusalBy(denied *Limit) Decision {
	d := Decision{Limit: denied, Receipt: Receipt{Origin: OriginRule}}
	if denied.Sheds() {
		d.RetryAfter = denied.Terms.Answer.RetryAfter
	} else {
		d.Never = true
	}
	return d
}

// take asks the store and writes the answer into d.
func (g *Gate) take(ctx context.Context, checks []Check, how how, d *Decision) {
	var until *graceEnd
	var err error
	*d, err = g.ask(ctx, checks, how)
	if err == nil && concernsGrace(checks, d) {
		*d, until, err = g.giveWay(ctx, checks, *d, how)
	}
	switch {
	case err != nil && ctx.Err() != nil: // the caller has left
		*d = Decision{Err: err, RetryAfter: time.Second, Limit: waitedLimit(checks)}
	case err != nil:
		*d = g.failed(checks, err)
	case d.OK:
		d.Soft = soft(checks)
	case d.Limit != nil && d.Limit.Terms != nil && d.Limit.Terms.AtEnd.Block != nil:
		g.block(ctx, checks, d, until)
	}
}

func (g *Gate) ask(ctx context.Context, checks []Check, how how) (Decision, error) {
	if how.settled {
		if all := withSettled(checks); len(all) > len(checks) {
			return g.askSettled(ctx, checks, all, how.recorded)
		}
	}
	if how.recorded != nil {
		return g.reserve(ctx, checks, how.recorded)
	}
	return g.store.Take(ctx, checks, 1)
}

// reserve asks the store, which records the checks that recorded says.
func (g *Gate) reserve(ctx context.Context, checks []Check, recorded []bool) (Decision, error) {
	store, ok := g.store.(Reserver)
	if !ok {
		return Decision{}, ErrUnsupported
	}
	swapEstimates(checks, recorded)
	defer swapEstimates(checks, recorded)
	return store.Reserve(ctx, checks, ReserveTTL)
}

// swapEstimates exchanges Check.Estimate for recorded: a store records what is marked as an estimate,
// and to a Gate that says how the true cost is found.
func swapEstimates(checks []Check, recorded []bool) {
	for i := range recorded {
		checks[i].Estimate, recorded[i] = recorded[i], checks[i].Estimate
	}
}

// waitedLimit returns the limit that a caller was waiting for when it left: the first enforced one
// that can make requests wait, or else the first enforced one; nil if there is none.
func waitedLimit(checks []Check) (first *Limit) {
	for i := range checks {
		c := &checks[i]
		if c.Advisory || c.Limit == nil {
			continue
		}
		if c.MaxWait > 0 || c.Limit.Terms != nil && c.Limit.Terms.Handling.Queue != nil {
			return c.Limit
		}
		if first == nil {
			first = c.Limit
		}
	}
	return first
}

// failed returns the decision when the store cannot answer because of err: one enforced check
// that fails closed is enough to refuse.
func (g *Gate) failed(checks []Check, err error) Decision {
	d := Decision{Err: err, Receipt: Receipt{Origin: OriginRule}}
	for i := range checks {
		c := &checks[i]
		if c.Advisory {
			continue
		}
		if d.Limit == nil {
			d.Limit = c.Limit
		}
		mode := g.fail
		if l := c.Limit; l != nil && l.Terms != nil && l.Terms.Handling.OnStoreFailure != FailDefault {
			mode = l.Terms.Handling.OnStoreFailure
		}
		if mode == FailClosed {
			d.Limit, d.RetryAfter = c.Limit, time.Second
			return d
		}
	}
	d.OK, d.Granted = true, 1
	return d
}

// soft reports whether an admitted request is above a limit that only marks.
func soft(checks []Check) bool {
	for i := range checks {
		c := &checks[i]
		if c.Advisory && c.Over && c.Limit.Terms != nil && c.Limit.Terms.Role == Marks {
			return true
		}
	}
	return false
}

// inFlightRetry bounds the RetryAfter when only requests in flight take up the limit: any of
// them may give back its charge at any moment.
const inFlightRetry = time.Second

// block starts the block of the limit that has refused, and updates the times of d. A block that
// has started is not prolonged. A caller is not blocked if it was refused because memory was
// full, because its cost can never fit, or because requests in flight take up the limit. until is
// the end of the grace that d holds for, or nil: if the block ends after it, RetryAfter becomes the
// time until the request would pass once that grace is over.
func (g *Gate) block(ctx context.Context, checks []Check, d *Decision, until *graceEnd) {
	if d.Never || d.Err != nil || d.Limit.Algorithm == Concurrency {
		return
	}
	b := d.Limit.Terms.AtEnd.Block
	for i := range checks {
		c := &checks[i]
		// A store that wraps another may have a limit of its own for this counter.
		if c.Advisory || c.Limit != d.Limit && c.Limit.identity != d.Limit.identity {
			continue
		}
		ctx := context.WithoutCancel(ctx) // a client that has hung up is blocked like any other
		usedUp, err := g.usedUp(ctx, c)
		if err != nil {
			return
		}
		start := Check{Key: c.Key, Limit: b, Cost: 1}
		if !usedUp {
			d.RetryAfter, until = min(d.RetryAfter, inFlightRetry), nil
			start.Cost = 0 // only look whether a block is in force
		}
		started, err := g.store.Take(ctx, []Check{start}, 1)
		blocked := time.Duration(0)
		switch {
		case err != nil || started.Err != nil:
			return
		case !started.OK: // a block is in force already
			blocked = started.RetryAfter
		case usedUp:
			blocked = b.Period
		}
		if blocked > d.RetryAfter {
			d.RetryAfter = blocked
			if until != nil && blocked >= until.left {
				d.RetryAfter = max(blocked, until.after(ctx, g))
			}
		}
		d.ResetAfter = max(d.ResetAfter, d.RetryAfter)
		return
	}
}

// usedUp reports whether settled requests alone leave no room for c, which was refused.
func (g *Gate) usedUp(ctx context.Context, c *Check) (bool, error) {
	if !c.unsettled() {
		return true, nil
	}
	booksAhead := c.MaxWait > 0 || c.Limit.Algorithm == LeakyBucket
	settled := []Check{{Key: c.Key, Limit: c.Limit.settled, Floor: c.Floor}}
	if booksAhead {
		settled[0].Cost = c.Cost
		peekingAll(settled)
		settled[0].MaxWait = c.MaxWait
	}
	d, err := g.store.Take(ctx, settled, 1)
	if err == nil {
		err = d.Err // a fallback has answered for the store
	}
	if booksAhead { // what remains does not include it
		return !d.OK, err
	}
	return d.Remaining < max(c.Cost, 1), err
}

// unsettled reports whether the charge of c may be given back at the end of the request, and
// its limit has a counter of its own for what is settled.
func (c *Check) unsettled() bool {
	return !c.Advisory && c.Limit.settled != nil && (c.Estimate || c.byStatus())
}
