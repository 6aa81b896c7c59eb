package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
)

// estimate is what a reservation was charged locally, until Settle replaces it by the true cost.
type estimate struct {
	taken  tidegate.Receipt
	wait   int64 // ticks until the turn, if there is a single bucket
	checks []tidegate.Check
}

// reserving is a call of the backend's Reserve.
type reserving struct {
	checks []tidegate.Check
	d      tidegate.Decision
	over   atomic.Bool // set by whichever is first: the reply, or the caller giving up
}

// Reserve implements tidegate.Reserver. When the backend has no answer, the fallbacks
// decide; what they admit locally can be settled at this node alone.
func (n *Node) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	if _, ok := traitsOf(checks); !ok || ttl <= 0 {
		return n.local.Reserve(ctx, checks, ttl) // says what is wrong
	}
	now := n.now()
	if n.impaired.Load() {
		if s := n.unasked(checks, now); s != nil {
			return n.reserveLocally(checks, ttl, s.reason(), now)
		}
	}
	a := &reserving{checks: copied(checks)}
	err := n.passWhole(ctx, a.checks, func(ctx context.Context) error {
		d, err := n.inner.Reserve(ctx, a.checks, ttl)
		a.d = d
		if !a.over.CompareAndSwap(false, true) && err == nil && d.OK {
			n.releaseEach(d.Receipt, a.checks)
			n.unreserve(d.Receipt)
		}
		return err
	})
	switch {
	case err == nil, !a.over.CompareAndSwap(false, true) && a.d.OK: // or the reply came just when the call was given up
	case ctx.Err() != nil, errors.Is(err, tidegate.ErrUnsupported):
		return tidegate.Decision{}, err
	default:
		n.unaskable.note(checks, err, time.Now())
		return n.reserveLocally(checks, ttl, err, n.now())
	}
	for i := range checks {
		checks[i].Over = a.checks[i].Over
	}
	n.see(checks, &a.d, now)
	return a.d, nil
}

// unasked returns a server that is not asked about its part of checks; nil if all are.
func (n *Node) unasked(checks []tidegate.Check, now time.Duration) *server {
	target, where := n.serversFor(checks, nil)
	if target != n.multi {
		where = target.self[:]
	}
	for _, s := range where {
		part := checks
		if target == n.multi {
			part = partOf(checks, where, s)
		}
		if s.asks(part, now) {
			continue
		}
		s.holdLocal(part)
		return s
	}
	return nil
}

// unreserve cancels a reservation that a late reply granted, because the caller has left or was
// answered by a fallback. If that fails, the estimate stays charged.
func (n *Node) unreserve(r tidegate.Receipt) {
	ctx, cancel := context.WithTimeout(context.Background(), lateReply)
	defer cancel()
	_ = n.inner.Settle(ctx, r, 0)
}

// lateReply is how long giving back a late reservation may take.
const lateReply = time.Second

// reserveLocally is Reserve by the fallbacks, because of err. What is admitted goes to the backlog, unless the
// reply was lost: if a late one grants the reservation after all, that is given back.
func (n *Node) reserveLocally(checks []tidegate.Check, ttl time.Duration, err error, now time.Duration) (tidegate.Decision, error) {
	if !n.estimates.Room(now) {
		return tidegate.Decision{Err: tidegate.ErrFull, Limit: first(checks), RetryAfter: denyRetry}, nil
	}
	d, _, err := n.decideLocally(checks, 1, err, now, !errors.Is(err, chain.ErrNoReply) || errors.Is(err, ErrOpen))
	if err != nil || !d.OK || d.Receipt.Origin != tidegate.OriginLocal {
		return d, err
	}
	var one estimate
	buckets := 0
	for i := range checks {
		if c := checks[i]; c.Estimate && n.mode(c.Limit) == tidegate.FailLocal && !(c.Advisory && c.Over) {
			one.checks = append(one.checks, c)
		}
		if isBucket(checks[i].Limit) {
			buckets++
		}
	}
	if buckets == 1 { // of several, nobody knows whose turn it is
		one.wait = algo.Ticks(d.Wait)
	}
	one.checks = copied(one.checks)
	d.Receipt.Handle = tidegate.NewHandle()
	one.taken = d.Receipt
	n.estimates.Keep(d.Receipt.Handle, one, now+ttl)
	return d, nil
}

func first(checks []tidegate.Check) *tidegate.Limit {
	if len(checks) == 0 {
		return nil
	}
	return checks[0].Limit
}

// Settle implements tidegate.Reserver. A local reservation can be settled only at the node that
// made it. Others are settled by the backend; remembered refusals may hide for up to a second
// what that gives back.
func (n *Node) Settle(ctx context.Context, r tidegate.Receipt, actual int64) error {
	switch {
	case actual < 0:
		return n.local.Settle(ctx, r, actual) // says what is wrong
	case n.foreign(r):
		return tidegate.ErrElsewhere
	case r.Origin != tidegate.OriginStore:
		return n.settleLocally(ctx, r.Handle, actual)
	}
	do := func(ctx context.Context) error { return n.inner.Settle(ctx, r, actual) }
	if all := n.all(); len(all) == 1 {
		return all[0].pass(ctx, do)
	}
	return n.multi.callInner(ctx, true, do)
}

// foreign reports whether r is of what another node decided locally.
func (n *Node) foreign(r tidegate.Receipt) bool {
	return r.Origin == tidegate.OriginLocal && r.Instance != n.instance
}

// settleLocally replaces the estimates of a local reservation by the actual cost, also in the
// backlog.
func (n *Node) settleLocally(ctx context.Context, h tidegate.Handle, actual int64) error {
	one, ok := n.estimates.Take(h, n.now())
	if !ok {
		return tidegate.ErrSettled
	}
	var errs error
	nodes := n.nodesAt(one.taken)
	for _, c := range one.checks {
		estimated := c.Cost
		p := new(part)
		was := n.scaled(c, nodes)
		pace, paced := n.repace(c, actual, nodes)
		c.Cost = actual
		is := n.scaled(c, nodes)
		taken := one.taken
		if isBucket(c.Limit) {
			taken.At += one.wait + was.Limit.Turn(min(is.Cost, was.Cost))
		}
		c.Cost, was.Cost = actual-estimated, is.Cost-was.Cost
		p.add(was, 0)
		if paced {
			p.addPace(pace, 0)
		}
		errs = errors.Join(errs, n.adjustPart(ctx, taken, []tidegate.Check{c}, p, nodes))
	}
	return errs
}
