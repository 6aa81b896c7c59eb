package node

import (
	"context"
	"slices"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
	"tidegate.dev/tidegate/internal/chain"
)

// copied returns a deep copy of checks: a call that was given up still runs, and must not
// use memory of the caller.
func copied(checks []tidegate.Check) []tidegate.Check {
	var v vector
	v.copy(checks)
	return v.checks
}

// Adjust implements tidegate.Store. What was taken from the local store is adjusted there
// and in the backlog.
func (n *Node) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if n.foreign(r) {
		return tidegate.ErrElsewhere
	}
	return n.divide(r, checks).each(ctx, n.adjustLocal, n.adjustWhole)
}

// adjustWhole is Adjust of what was decided in one place.
func (n *Node) adjustWhole(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if r.Origin != tidegate.OriginStore {
		return n.adjustLocal(ctx, r, checks)
	}
	checks = copied(checks)
	return n.passEach(ctx, checks, func(ctx context.Context, part []tidegate.Check) error {
		defer n.returned(part)
		return n.inner.Adjust(ctx, r, part)
	}, func(s *server, part []tidegate.Check) {
		if releases(part) {
			s.releaseLater(r, part)
		}
	})
}

// releases reports whether something is given back.
func releases(checks []tidegate.Check) bool {
	for i := range checks {
		if checks[i].Cost < 0 {
			return true
		}
	}
	return false
}

// returned forgets the refusals of the counters that got something back.
func (n *Node) returned(checks []tidegate.Check) {
	for i := range checks {
		if c := &checks[i]; c.Cost < 0 && c.Limit != nil {
			n.dropRefusals(c)
		}
	}
}

// adjustLocal adjusts what was taken from the local store.
func (n *Node) adjustLocal(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	nodes := n.nodesAt(r)
	return n.adjustPart(ctx, r, checks, n.localPart(checks, nodes), nodes)
}

// adjustPart adjusts the local store and the backlog of checks. p has checks in the form in
// which the local store counts them.
func (n *Node) adjustPart(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check, p *part, nodes int64) error {
	now := n.now()
	before := n.bucketUse(checks, p)
	err := n.local.Adjust(ctx, r, p.checks)
	n.addPartToBacklog(n.adjusted(r, checks, p, before, nodes, now), p, 1, nodes, now)
	n.returned(checks)
	return err
}

// bucketUse returns how many events are used of the buckets that p returns something to, by the indexes of their checks.
func (n *Node) bucketUse(checks []tidegate.Check, p *part) (used map[int]int64) {
	for _, at := range p.from[:p.own] {
		c := &checks[at]
		if c.Cost >= 0 || !isBucket(c.Limit) {
			continue
		}
		if used == nil {
			used = make(map[int]int64)
		}
		used[at], _ = n.localUse(c.Limit, c.Key)
	}
	return used
}

// adjusted returns checks at the costs that the local store has adjusted them by: what does not count any more
// is returned to nobody. before is what bucketUse returned before that.
func (n *Node) adjusted(r tidegate.Receipt, checks []tidegate.Check, p *part, before map[int]int64, nodes int64, now time.Duration) []tidegate.Check {
	all := checks[:len(checks):len(checks)]
	for _, at := range p.from[:p.own] {
		c := checks[at]
		if c.Cost >= 0 {
			continue
		}
		if was, ok := before[at]; ok {
			is, _ := n.localUse(c.Limit, c.Key)
			c.Cost = max(c.Cost, -(max(0, was-is)+nodes-1)/nodes)
		} else if r.At > 0 && !r.IsLatest() && hasLeft(c.Limit, r.At, algo.Instant(n.wall(now))) {
			c.Cost = 0
		}
		if c.Cost != checks[at].Cost {
			if &all[0] == &checks[0] {
				all = slices.Clone(checks)
			}
			all[at] = c
		}
	}
	return all
}

// hasLeft reports whether what a window counted at an instant has left it by now.
func hasLeft(l *tidegate.Limit, at, now int64) bool {
	switch l.Algorithm {
	case tidegate.FixedWindow, tidegate.Quota:
		return algo.SpanAt(l, at) != algo.SpanAt(l, now)
	}
	return now-at >= int64(l.Period/time.Microsecond)*algo.Micro
}

// localPart returns the checks that the local store counts, in the form in which it does.
func (n *Node) localPart(checks []tidegate.Check, nodes int64) *part {
	p := new(part)
	for i, c := range checks {
		if n.mode(c.Limit) != tidegate.FailLocal {
			continue
		}
		back := c.Cost < 0
		if back {
			c.Cost = -c.Cost
		}
		c = n.scaled(c, nodes)
		if back {
			c.Cost = -c.Cost
		}
		p.add(c, i)
	}
	n.addPaces(p, checks, nodes)
	return p
}

// Renew implements tidegate.Renewer.
func (n *Node) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if n.foreign(r) {
		return tidegate.ErrElsewhere
	}
	return n.divide(r, checks).each(ctx, n.renewLocal, n.renewWhole)
}

// renewWhole is Renew of what was decided in one place.
func (n *Node) renewWhole(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if r.Origin != tidegate.OriginStore {
		return n.renewLocal(ctx, r, checks)
	}
	checks = copied(checks)
	err := n.passEach(ctx, checks, func(ctx context.Context, part []tidegate.Check) error { return n.inner.Renew(ctx, r, part) }, nil)
	n.leases.renewed(checks, err)
	return err
}

func (n *Node) renewLocal(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	err := n.local.Renew(ctx, r, n.localPart(checks, n.nodes()).checks)
	n.leases.renewed(checks, err)
	return err
}

// Post implements chain.Backend.
func (n *Node) Post(ctx context.Context, p chain.Post) error {
	p.Check = copied([]tidegate.Check{p.Check})[0]
	return n.serverOf(&p.Check).pass(ctx, func(ctx context.Context) error { return n.inner.Post(ctx, p) })
}

// Reset implements tidegate.Resetter. This node forgets what it knows of the keys even if the
// backend cannot be reached. It also forgets all refusals, including those that calls under
// way may still bring.
func (n *Node) Reset(ctx context.Context, checks []tidegate.Check) error {
	checks = copied(checks)
	err := n.passEach(ctx, checks, func(ctx context.Context, part []tidegate.Check) error {
		defer n.forgetRefusals(part)
		return n.inner.Reset(ctx, part)
	}, nil)
	n.forget(ctx, checks)
	return err
}

func (n *Node) forget(ctx context.Context, checks []tidegate.Check) {
	n.mu.Lock()
	for _, s := range n.all() {
		s.backlog.forget(checks)
	}
	n.mu.Unlock()
	for _, c := range checks {
		name := n.seen.name(c.Limit, c.Key)
		_, _, word := n.seen.look(name)
		n.seen.forget(name, word)
	}
	_ = n.local.Reset(ctx, n.withPaces(checks)) // it accepts all limits that the backend accepts
	n.forgetRefusals(checks)
}

// forgetRefusals drops the refusals of checks, and makes all others void while the backend answers.
func (n *Node) forgetRefusals(checks []tidegate.Check) {
	n.Forget()
	for i := range checks {
		if c := &checks[i]; c.Limit != nil {
			n.dropRefusals(c)
		}
	}
}

// dropRefusals forgets the refusals of a counter.
func (n *Node) dropRefusals(c *tidegate.Check) {
	n.deny.drop(n.deny.counter(c.Limit, c.Key), n.now())
	n.forgetInherited(c)
}
