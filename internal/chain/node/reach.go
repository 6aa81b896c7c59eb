package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
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
	if inLine := unsure(err) && (s.lines(began) || n.lag.now(n.now()) > 0) && s.heardSince(began); !aside && !inLine {
		s.fail(err, began, 1)
	}
}

func safely(ctx context.Context, do func(context.Context) error) (err error) {
	defer recovered(&err)
	return do(ctx)
}
