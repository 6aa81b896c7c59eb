package tidegate

import (
	"context"
	"slices"
	"strings"
)

// Ticket is what is left to do about an admitted request, for a front end that does not
// see how the request ends: whoever asked comes back with the ticket, to this process or
// to another one on the same store. Its text says it all; see MarshalText.
//
// Whoever has a ticket can give back what it is about. Hand it to those who asked, not to
// their clients.
type Ticket struct {
	taken taken
	slots []Check
	// recorded are charged, and kept in a record that the receipt names: settling the
	// record settles all of them, once. others are charged beside it, and are settled by
	// whoever settles the record.
	recorded, others []Check
	// settled: all of them count as settled already, until they are.
	settled bool
}

// Issue is Enter for front ends that do not see the end of a request: whoever asked settles
// the ticket when it knows how the request ended, renews the slots meanwhile, or releases
// them. What is never settled stays charged, and slots are free when their lease runs out.
// The ticket is nil when nothing is left to do, or the request was refused.
//
// What counts by status, or on an estimate, is kept as a reservation, for [ReserveTTL]. Until it
// is settled, it is in flight: it refuses others and starts no Block. Use IssueSettled for callers
// who may never come back.
func (g *Gate) Issue(ctx context.Context, r *Request) (Decision, *Ticket) {
	return g.issue(ctx, r, false)
}

// IssueSettled is Issue for callers who may settle the ticket or never come back: until they do,
// the request counts as if its outcome did, and as much as was estimated. So it may start a Block,
// as after Decide.
func (g *Gate) IssueSettled(ctx context.Context, r *Request) (Decision, *Ticket) {
	return g.issue(ctx, r, true)
}

func (g *Gate) issue(ctx context.Context, r *Request, settled bool) (Decision, *Ticket) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	counted, _ := splitAccess(checks)
	estimates := markRecorded(counted)
	d, counted := g.decide(ctx, r, checks, how{record: estimates != nil, settled: settled})
	var t *Ticket
	if d.OK && d.Err == nil {
		t = newTicket(counted, estimates, &d)
	}
	if t != nil {
		t.settled = settled
	}
	g.putChecks(held, checks)
	return d, t
}

// markRecorded marks what is to be kept in one record: the first check that something
// depends on at the end, and those that depend on it in the same way. It returns which were
// marked as estimates before; nil if there is nothing to record.
func markRecorded(checks []Check) (estimates []bool) {
	var first Check
	for i := range checks {
		c := &checks[i]
		if c.Limit == nil || !c.lingers() || c.Limit.Algorithm == Concurrency {
			continue
		}
		if estimates == nil {
			first, estimates = *c, make([]bool, len(checks))
		}
		estimates[i] = c.Estimate
		c.Estimate = c.endsLike(&first)
	}
	return estimates
}

// endsLike reports whether c and as have the same true cost, whatever the outcome.
func (c *Check) endsLike(as *Check) bool {
	return c.Cost == as.Cost && c.Estimate == as.Estimate && c.source() == as.source() && slices.Equal(c.statuses(), as.statuses())
}

func (c *Check) statuses() []StatusRange {
	if c.Limit.Terms == nil {
		return nil
	}
	return c.Limit.Terms.AtEnd.Counts
}

func newTicket(checks []Check, estimates []bool, d *Decision) *Ticket {
	var t *Ticket
	for i := range checks {
		c := checks[i]
		recorded := estimates != nil && c.Estimate
		if estimates != nil {
			c.Estimate = estimates[i]
		}
		if !c.lingers() {
			continue
		}
		if t == nil {
			t = &Ticket{taken: newTaken(d, checks)}
		}
		c.Key = strings.Clone(c.Key) // it may lie in memory of the request
		switch {
		case c.Limit.Algorithm == Concurrency:
			t.slots = append(t.slots, c)
		case recorded:
			t.recorded = append(t.recorded, c)
		default:
			t.others = append(t.others, c)
		}
	}
	return t
}

// Holds reports whether there are slots to renew and to release.
func (t *Ticket) Holds() bool { return t != nil && len(t.slots) > 0 }

// Settle ends the request of a ticket: what does not count by the outcome is given back,
// estimates become the true cost, slots are released. It does so once: later calls, and
// those after ReserveTTL, return ErrSettled. ErrElsewhere means that the counters are those
// of another process. After any other error it may be called again.
func (g *Gate) Settle(ctx context.Context, t *Ticket, o Outcome) error {
	if t == nil {
		return nil
	}
	v := &Visit{store: g.store, ctx: context.WithoutCancel(ctx), taken: t.taken, kept: t.others, settled: t.settled}
	if len(t.recorded) > 0 {
		store, ok := g.store.(Reserver)
		if !ok {
			return ErrUnsupported
		}
		if err := store.Settle(ctx, t.taken.receipt, v.trueCost(&t.recorded[0], o)); err != nil {
			return err
		}
	}
	if len(t.slots) > 0 {
		v.slots = &holding{store: g.store, ctx: v.ctx, taken: t.taken.receipt, slots: t.slots, detach: func() bool { return false }}
	}
	return v.end(o, t.recorded)
}

// Renew prolongs the leases of the slots of a ticket; see [Renewer].
func (g *Gate) Renew(ctx context.Context, t *Ticket) error {
	renewer, ok := g.store.(Renewer)
	switch {
	case !t.Holds():
		return ErrLeaseLost
	case !ok:
		return ErrUnsupported
	}
	return renewer.Renew(ctx, t.taken.receipt, t.slots)
}

// Release gives the slots of a ticket back. Everything else stays charged, and can still
// be settled. It may be repeated.
func (g *Gate) Release(ctx context.Context, t *Ticket) error {
	if !t.Holds() {
		return nil
	}
	back := slices.Clone(t.slots)
	for i := range back {
		back[i].Cost = -back[i].Cost
	}
	return g.store.Adjust(ctx, t.taken.receipt, back)
}
