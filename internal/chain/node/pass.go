package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// pass calls the backend by the deadline, unless the circuit is open. It is not tried
// again, whatever comes of it.
func (s *server) pass(ctx context.Context, do func(context.Context) error) error {
	if s.share.Load() == 0 {
		return *s.why.Load()
	}
	return s.reach(ctx, false, do)
}

// passSeveral is pass of a call that several servers take part in.
func (n *Node) passSeveral(ctx context.Context, where []*server, do func(context.Context) error) error {
	for _, s := range where {
		if s.share.Load() == 0 {
			return *s.why.Load()
		}
	}
	err := n.several.reach(ctx, true, do)
	if ctx.Err() == nil && !shows(err) {
		for _, s := range where {
			s.suspect(1)
		}
	}
	return err
}

// passWhole is pass of a call about checks that cannot be divided.
func (n *Node) passWhole(ctx context.Context, checks []tidegate.Check, do func(context.Context) error) error {
	way, where := n.wayTo(checks, nil)
	if way != n.several {
		return way.pass(ctx, do)
	}
	return n.passSeveral(ctx, where, do)
}

// passEach is pass for the checks of each server by themselves, at the same time: one that
// does not answer is not in the way of others. failed is told the checks of those that
// failed.
func (n *Node) passEach(ctx context.Context, checks []tidegate.Check, do func(context.Context, []tidegate.Check) error, failed func(*server, []tidegate.Check)) error {
	one := func(s *server, part []tidegate.Check) error {
		err := s.pass(ctx, func(ctx context.Context) error { return do(ctx, part) })
		if err != nil && failed != nil {
			failed(s, part)
		}
		return err
	}
	way, where := n.wayTo(checks, nil)
	if way != n.several {
		return one(way, checks)
	}
	var (
		all  sync.WaitGroup
		errs = make([]error, len(where))
	)
	for i, s := range where {
		if slices.Index(where, s) == i {
			all.Go(func() { errs[i] = one(s, partOf(checks, where, s)) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// partOf is those of checks that live on s.
func partOf(checks []tidegate.Check, where []*server, s *server) (part []tidegate.Check) {
	for i := range checks {
		if where[i] == s {
			part = append(part, checks[i])
		}
	}
	return part
}

// The states of a call that is not Take's.
const (
	passing     = iota
	passed      // it has a result
	passedLate  // it was given up at the deadline, and counted as a failure
	passedAlone // its caller has left: how it ends is still to be counted
)

// reach is pass even if the circuit is open. What is done aside is for no request.
func (s *server) reach(ctx context.Context, aside bool, do func(context.Context) error) error {
	n := s.node
	return s.reachBy(ctx, n.contexts.deadline.get(n, n.o.Deadline), aside, do)
}

// reachBy is reach by another deadline than that of requests.
func (s *server) reachBy(ctx, until context.Context, aside bool, do func(context.Context) error) error {
	n := s.node
	if err := ctx.Err(); err != nil {
		return err
	}
	began := n.now()
	record := func(err error) { s.recordOne(err, began, aside) }
	if !s.begin() {
		record(ErrBusy)
		return ErrBusy
	}
	var state atomic.Uint32
	done := make(chan error, 1)
	go func() {
		err := safely(within{until, ctx}, do)
		s.inFlight.Add(-1)
		if state.CompareAndSwap(passing, passed) {
			done <- err
		} else if state.Load() == passedAlone {
			record(err)
		}
	}()
	var err error
	select {
	case err = <-done:
	case <-until.Done():
		if state.CompareAndSwap(passing, passedLate) {
			record(n.late)
			return n.late
		}
		err = <-done
	case <-ctx.Done():
		if state.CompareAndSwap(passing, passedAlone) {
			return ctx.Err()
		}
		err = <-done
	}
	record(err)
	return err
}

// recordOne counts how a call ended that began then. What is done aside, for no request,
// does not open the circuit.
func (s *server) recordOne(err error, began time.Duration, aside bool) {
	n := s.node
	if n.worked(err, 1) {
		s.good.Add(1)
		return
	}
	n.countFailure(err, 1)
	if !aside {
		s.fail(err, began, 1)
	}
}

func safely(ctx context.Context, do func(context.Context) error) (err error) {
	defer recovered(&err)
	return do(ctx)
}

// copied is checks in memory of their own: a call that is given up must not look at
// memory of the caller's.
func copied(checks []tidegate.Check) []tidegate.Check {
	var v vector
	v.copy(checks)
	return v.checks
}

// Adjust implements tidegate.Store. What was taken from the local store is given back
// there, and no longer owed to the backend if it still is.
func (n *Node) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if n.foreign(r) {
		return tidegate.ErrElsewhere
	}
	if r.Origin != tidegate.OriginStore {
		nodes := n.nodes()
		return n.adjustPart(ctx, r, checks, n.localPart(checks, nodes), nodes)
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

// returned forgets the refusals of those that got something back.
func (n *Node) returned(checks []tidegate.Check) {
	for i := range checks {
		if c := &checks[i]; c.Cost < 0 && c.Limit != nil {
			n.deny.drop(n.deny.counter(c.Limit, c.Key), n.now())
		}
	}
}

// adjustPart adjusts what was taken from the local store, which was asked about p for
// checks, and what is owed with it.
func (n *Node) adjustPart(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check, p *part, nodes int64) error {
	now := n.now()
	err := n.local.Adjust(ctx, r, p.checks)
	n.owePart(checks, p, 1, nodes, now)
	n.returned(checks)
	return err
}

// localPart is those of checks that the local store counts, as it is asked for them.
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
	return p
}

// Renew implements tidegate.Renewer.
func (n *Node) Renew(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	if n.foreign(r) {
		return tidegate.ErrElsewhere
	}
	if r.Origin != tidegate.OriginStore {
		return n.local.Renew(ctx, r, n.localPart(checks, n.nodes()).checks)
	}
	checks = copied(checks)
	return n.passEach(ctx, checks, func(ctx context.Context, part []tidegate.Check) error { return n.inner.Renew(ctx, r, part) }, nil)
}

// Post implements chain.Backend.
func (n *Node) Post(ctx context.Context, p chain.Post) error {
	p.Check = copied([]tidegate.Check{p.Check})[0]
	return n.serverOf(&p.Check).pass(ctx, func(ctx context.Context) error { return n.inner.Post(ctx, p) })
}

// Reset implements tidegate.Resetter. What this node knows of the keys is forgotten
// whether the backend can be reached or not, and so is every refusal, those of calls
// that are out included.
func (n *Node) Reset(ctx context.Context, checks []tidegate.Check) error {
	checks = copied(checks)
	err := n.passEach(ctx, checks, func(ctx context.Context, part []tidegate.Check) error {
		defer n.Forget()
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
	_ = n.local.Reset(ctx, checks) // limits that the backend takes, it takes
	n.Forget()
}
