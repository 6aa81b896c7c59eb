package tidegate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Visit is an admitted request for which something is to be done at its end:
// slots to give back, charges that depend on the status, estimates to settle.
// The caller of [Gate.Enter] calls End when the request is over. All methods may
// be called on a nil Visit, and by several goroutines.
type Visit struct {
	store Store
	ctx   context.Context // outlives the request's
	taken taken
	slots *holding // nil means none
	kept  []Check  // charges that depend on the status, or are estimates
	// settled: what is kept was charged to Limit.Settled as well.
	settled bool

	mu    sync.Mutex
	ended bool
	found []foundCost
}

type foundCost struct {
	source string
	cost   int64
}

// Outcome is how a request ended.
type Outcome struct {
	// Status of the answer; 0 when it is not known, for example because the client
	// left before. Charges that depend on the status then stay.
	Status int
	// Cost is the true cost for estimates, if CostKnown is set and Visit.Found has
	// told no other. An estimate without a true cost stays charged.
	Cost      int64
	CostKnown bool
	// Void: the request has reached nobody. All charges of the Visit are given back;
	// see Charge.Return for the rest.
	Void bool
}

// lingers reports whether c, which was admitted, leaves something to do at the end
// of the request.
func (c *Check) lingers() bool {
	switch {
	case c.Advisory && c.Over: // not charged
		return false
	case c.Limit.Algorithm == Concurrency:
		return c.Cost > 0
	}
	return c.Estimate || c.Cost > 0 && c.byStatus()
}

// newVisit returns nil when nothing lingers of the admitted checks. Keys may lie in
// memory of the request, and are copied.
func newVisit(ctx context.Context, store Store, checks []Check, d *Decision) *Visit {
	var v *Visit
	var slots []Check
	for i := range checks {
		if !checks[i].lingers() {
			continue
		}
		if v == nil {
			v = &Visit{store: store, ctx: context.WithoutCancel(ctx), taken: newTaken(d, checks)}
		}
		c := checks[i]
		c.Key = strings.Clone(c.Key)
		if c.Limit.Algorithm == Concurrency {
			slots = append(slots, c)
		} else {
			v.kept = append(v.kept, c)
		}
	}
	if len(slots) > 0 {
		v.slots = hold(ctx, store, d.Receipt, slots)
	}
	return v
}

// Holds reports whether the request holds slots: until End, or the end of the
// context that it was entered with.
func (v *Visit) Holds() bool { return v != nil && v.slots != nil }

// Detach keeps the slots when the context ends: only End gives them back then.
func (v *Visit) Detach() {
	if v.Holds() {
		v.slots.outliveContext()
	}
}

// RenewEvery returns the time from one renewal of the leases of the slots to the next,
// while they are held; 0 when there are none.
func (v *Visit) RenewEvery() time.Duration {
	if !v.Holds() {
		return 0
	}
	return v.slots.every()
}

// Renew prolongs the leases of the slots now. A Visit does so by itself, by the clock
// of the process; Renew is for callers with another clock, such as tests.
func (v *Visit) Renew(ctx context.Context) error {
	if renewer, ok := v.renewer(); ok {
		return renewer.Renew(ctx, v.taken.receipt, v.slots.slots)
	}
	return nil
}

func (v *Visit) renewer() (Renewer, bool) {
	if !v.Holds() {
		return nil, false
	}
	r, ok := v.store.(Renewer)
	return r, ok
}

// ByStatus reports whether End has to know the status.
func (v *Visit) ByStatus() bool {
	return v != nil && slices.ContainsFunc(v.kept, func(c Check) bool { return c.byStatus() })
}

// Sources returns where to find the true costs of the estimates, in the form of
// AtEnd.Settle, each of them once.
func (v *Visit) Sources() []string {
	if v == nil {
		return nil
	}
	var all []string
	for i := range v.kept {
		if s := v.kept[i].source(); s != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Found sets the true cost that one of the Sources has given, for End. It replaces an
// earlier one of the same source: in a stream, the last one counts.
func (v *Visit) Found(source string, cost int64) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	for i := range v.found {
		if v.found[i].source == source {
			v.found[i].cost = cost
			return
		}
	}
	v.found = append(v.found, foundCost{source, cost})
}

// End gives back the slots and the charges that do not count by the outcome, and
// settles the estimates; a cost above the estimate is charged whether there is room or
// not. What stays charged is then settled, and may start a Block. Only the first call
// has an effect. The error is the store's: what could not be given back stays charged,
// a slot until its lease runs out.
func (v *Visit) End(o Outcome) error {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	ended := v.ended
	v.ended = true
	v.mu.Unlock()
	if ended {
		return nil
	}
	return v.end(o, nil)
}

// end adjusts all charges to the outcome. The charges of recorded were adjusted before, but not
// those to their Limit.Settled.
func (v *Visit) end(o Outcome, recorded []Check) error {
	var p pending
	if v.slots != nil {
		p.changes = v.slots.end()
	}
	for i := range recorded {
		v.settle(&p, &recorded[i], o)
	}
	for i := range v.kept {
		c := v.kept[i]
		v.settle(&p, &c, o)
		p.change(v, c, v.trueCost(&c, o))
	}
	err := errors.Join(p.err, v.taken.adjust(v.ctx, v.store, p.changes))
	v.prolongHolds(recorded, o)
	v.prolongHolds(v.kept, o)
	return err
}

// settle adds to p the change that makes Limit.Settled count what stays charged of c.
func (v *Visit) settle(p *pending, c *Check, o Outcome) {
	if !c.unsettled() {
		return
	}
	counted := int64(0)
	if v.settled {
		counted = c.Cost
	}
	p.change(v, Check{Key: c.Key, Limit: c.Limit.settled, Cost: counted}, v.trueCost(c, o))
}

// pending collects changes to be made in one call, and the error of those made before.
type pending struct {
	changes []Check
	err     error
}

// change makes cost the charge of c: it adds the difference to p.changes or, to give back turns of a
// leaky bucket, calls the store at once.
func (p *pending) change(v *Visit, c Check, cost int64) {
	c.Cost = cost - c.Cost
	switch {
	case c.Cost == 0:
	case c.Cost < 0 && c.Limit.Turn(cost) > 0: // give back only the turns after those that stay
		p.err = errors.Join(p.err, v.store.Adjust(v.ctx, v.taken.receiptAt(v.taken.instantOf(&c)+c.Limit.Turn(cost)), []Check{c}))
	default:
		p.changes = append(p.changes, c)
	}
}

// trueCost returns what c costs by the outcome. v has ended, so found does not change any more.
func (v *Visit) trueCost(c *Check, o Outcome) int64 {
	if o.Void {
		return 0
	}
	if o.Status != 0 && !c.counts(o.Status) {
		return 0
	}
	if !c.Estimate {
		return c.Cost
	}
	for _, f := range v.found {
		if f.source == c.source() {
			return max(f.cost, 0)
		}
	}
	if o.CostKnown {
		return max(o.Cost, 0)
	}
	return c.Cost
}

// counts reports whether a request answered with status stays charged.
func (c *Check) counts(status int) bool {
	if !c.byStatus() {
		return true
	}
	return slices.ContainsFunc(c.Limit.Terms.AtEnd.Counts, func(r StatusRange) bool { return r.From <= status && status <= r.To })
}

func (c *Check) byStatus() bool { return c.Limit.Terms != nil && len(c.Limit.Terms.AtEnd.Counts) > 0 }

func (c *Check) source() string {
	if !c.Estimate || c.Limit.Terms == nil {
		return ""
	}
	return c.Limit.Terms.AtEnd.Settle
}
