package tidegate

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Ticket says what is left to do about an admitted request, for a front end that does not
// see how the request ends: the service that asked comes back with the ticket, to this
// process or to another one on the same store. Its text is complete; see MarshalText.
//
// Whoever has a ticket can give back its charges. Hand it to the service that asked, not to
// the clients of that.
type Ticket struct {
	taken taken
	slots []Check
	// recorded are charges in a record of the store, which the receipt names: settling the
	// record settles all of them, once. The caller that settles the record then adjusts
	// others. If there are others, there is a record, though nothing may be recorded in it: what
	// was to be had no room, and was only tried.
	recorded, others []Check
	// settled: all were charged to Limit.Settled as well.
	settled bool
}

// Issue is Enter for front ends that do not see the end of a request: the service that asked
// settles the ticket when it knows how the request ended. Until then it renews the slots, or
// releases them. What is never settled stays charged, and slots are free when their lease runs
// out. The ticket is nil when nothing is left to do, or the request was refused.
//
// Charges that depend on the status, or are estimates, are kept as a reservation, for
// [ReserveTTL]. Until they are settled, the request is in flight: its charges count, and start no
// Block. Use IssueSettled for callers that may never come back.
func (g *Gate) Issue(ctx context.Context, r *Request) (Decision, *Ticket) {
	return g.issue(ctx, r, false)
}

// IssueSettled is Issue for callers that may never come back: until they settle the ticket, the
// request counts as if it had ended with an outcome that counts, at the estimated cost. So it may
// start a Block, as with Decide.
func (g *Gate) IssueSettled(ctx context.Context, r *Request) (Decision, *Ticket) {
	return g.issue(ctx, r, true)
}

func (g *Gate) issue(ctx context.Context, r *Request, settled bool) (d Decision, t *Ticket) {
	held := g.checks.Get().(*[]Check)
	checks := g.matcher.Match(r, (*held)[:0])
	counted, _ := splitAccess(checks)
	recorded := inOneRecord(counted)
	counted = g.decide(ctx, r, checks, how{recorded: recorded, settled: settled}, &d)
	if d.OK && d.Err == nil {
		t = newTicket(counted, recorded, &d)
	}
	if t != nil {
		t.settled = settled
	}
	g.putChecks(held, checks)
	return d, t
}

// inOneRecord returns which checks are to be kept in one record: the first one that depends on how the
// request ends, and those that depend on it in the same way; nil if there is none.
func inOneRecord(checks []Check) (recorded []bool) {
	var first *Check
	for i := range checks {
		c := &checks[i]
		if c.Limit == nil || !c.lingers() || c.Limit.Algorithm == Concurrency {
			continue
		}
		if first == nil {
			first, recorded = c, make([]bool, len(checks))
		}
		recorded[i] = c.endsLike(first)
	}
	return recorded
}

// endsLike reports whether c and as have the same true cost for every outcome.
func (c *Check) endsLike(as *Check) bool {
	return c.Cost == as.Cost && c.Estimate == as.Estimate && c.source() == as.source() && slices.Equal(c.statuses(), as.statuses())
}

func (c *Check) statuses() []StatusRange {
	if c.Limit.Terms == nil {
		return nil
	}
	return c.Limit.Terms.AtEnd.Counts
}

func newTicket(checks []Check, recorded []bool, d *Decision) *Ticket {
	var t *Ticket
	for i := range checks {
		c := checks[i]
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
		case recorded[i]:
			t.recorded = append(t.recorded, c)
		default:
			t.others = append(t.others, c)
		}
	}
	return t
}

// Holds reports whether there are slots to renew and to release.
func (t *Ticket) Holds() bool { return t != nil && len(t.slots) > 0 }

// Settle ends the request of a ticket: it gives back what does not count by the outcome,
// replaces estimates by the true cost, and releases the slots. It does so once: later calls,
// and those after ReserveTTL, do what Release does and return ErrSettled. With a ticket that has only
// slots, every call does what Release does. ErrElsewhere means that another process has the counters.
// After any other error it may be called again.
func (g *Gate) Settle(ctx context.Context, t *Ticket, o Outcome) error {
	if t == nil {
		return nil
	}
	v := &Visit{store: g.store, ctx: context.WithoutCancel(ctx), taken: t.taken, kept: t.others, settled: t.settled}
	if len(t.recorded)+len(t.others) > 0 {
		store, ok := g.store.(Reserver)
		if !ok {
			return ErrUnsupported
		}
		actual := int64(0)
		if len(t.recorded) > 0 {
			actual = v.trueCost(&t.recorded[0], o)
		}
		err := store.Settle(ctx, t.taken.receipt, actual)
		if errors.Is(err, ErrSettled) { // perhaps an earlier call got no further than this
			if failed := g.Release(v.ctx, t); failed != nil {
				return failed
			}
		}
		if err != nil {
			return err
		}
	}
	if len(t.slots) > 0 {
		v.slots = &holding{store: g.store, ctx: v.ctx, taken: t.taken.receipt, slots: t.slots, detach: func() bool { return false }}
	}
	return v.end(o, t.recorded)
}

// Renew prolongs the leases of the slots of a ticket; see [Renewer]. It returns ErrLeaseLost if one
// has run out, or the ticket has no slots.
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
