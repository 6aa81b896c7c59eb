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

// pass calls the backend, and gives up at the deadline. It never retries. While the circuit is
// open it makes no call and returns the reason.
func (s *server) pass(ctx context.Context, do func(context.Context) error) error {
	if s.share.Load() == 0 {
		return *s.why.Load()
	}
	return s.callInner(ctx, false, do)
}

// passWhole is pass for a call about checks that cannot be divided among servers. Like Take, it
// waits beyond the deadline while the call is only queued behind others.
func (n *Node) passWhole(ctx context.Context, checks []tidegate.Check, do func(context.Context) error) error {
	target, where := n.serversFor(checks, nil)
	if target != n.multi {
		where = target.self[:]
	}
	for _, s := range where {
		if s.share.Load() == 0 {
			return *s.why.Load()
		}
	}
	until := n.contexts.deadline.get(n, n.o.Deadline)
	err := target.callInnerBy(ctx, innerCall{until: until, queuedAt: where, aside: target == n.multi}, do)
	if target == n.multi && ctx.Err() == nil && !showsLife(err) {
		for _, s := range where {
			s.suspect(1)
		}
	}
	return err
}

// passEach is pass for the checks of each server separately and at the same time, so that a server
// that does not answer does not hold up the others. failed, unless nil, is called with the checks
// of each call that failed. The errors of all calls are joined.
func (n *Node) passEach(ctx context.Context, checks []tidegate.Check, do func(context.Context, []tidegate.Check) error, failed func(*server, []tidegate.Check)) error {
	one := func(s *server, part []tidegate.Check) error {
		err := s.pass(ctx, func(ctx context.Context) error { return do(ctx, part) })
		if err != nil && failed != nil {
			failed(s, part)
		}
		return err
	}
	target, where := n.serversFor(checks, nil)
	if target != n.multi {
		return one(target, checks)
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

// partOf returns the checks that live on s.
func partOf(checks []tidegate.Check, where []*server, s *server) (part []tidegate.Check) {
	for i := range checks {
		if where[i] == s {
			part = append(part, checks[i])
		}
	}
	return part
}

// innerCall is a call of the backend that is not for Take.
type innerCall struct {
	until    context.Context // ends when the call is given up
	aside    bool            // its failure does not open a circuit: it serves no request, or involves several servers
	queuedAt []*server       // the call is not given up while it is only queued at these
}

// The states of an innerCall.
const (
	passing     = iota
	passed      // it has a result
	passedLate  // it was given up at the deadline, and counted as a failure
	passedAlone // its caller has left; its result is still to be counted
)

// callInner is pass that ignores an open circuit.
func (s *server) callInner(ctx context.Context, aside bool, do func(context.Context) error) error {
	n := s.node
	return s.callInnerBy(ctx, innerCall{until: n.contexts.deadline.get(n, n.o.Deadline), aside: aside}, do)
}

// callInnerBy calls the backend once, and returns when the call returns or is given up.
func (s *server) callInnerBy(ctx context.Context, c innerCall, do func(context.Context) error) error {
	n := s.node
	if err := ctx.Err(); err != nil {
		return err
	}
	began := n.now()
	record := func(err error) { s.recordOne(err, began, c.aside) }
	if !s.begin() {
		record(ErrBusy)
		return ErrBusy
	}
	own := c.until
	if len(c.queuedAt) > 0 {
		own = n.contexts.late.get(n, n.o.Deadline+lateFor)
	}
	var state atomic.Uint32
	out := flight{server: s}
	done := make(chan error, 1)
	go func() {
		for _, at := range c.queuedAt {
			at.noteAsked(n.now())
		}
		err := safely(within{own, ctx}, do)
		out.end()
		for _, at := range c.queuedAt {
			at.noteEnded()
			if showsLife(err) {
				at.replied.Store(int64(n.now()))
			}
		}
		if state.CompareAndSwap(passing, passed) {
			done <- err
		} else if state.Load() == passedAlone {
			record(err)
		}
	}()
	left, over := ctx.Done(), c.until.Done()
	var later <-chan time.Time
	for {
		select {
		case err := <-done:
			record(err)
			return err
		case <-left:
			if left = nil; state.CompareAndSwap(passing, passedAlone) {
				context.AfterFunc(c.until, out.overdue)
				return ctx.Err()
			}
			continue // its result is there
		case <-over:
			over = nil
		case <-later:
			later = nil
		}
		now := n.now()
		if len(c.queuedAt) > 0 && now-began < n.o.Deadline+n.maxQueueing(now) && n.behind(s, began, now) && !n.silent(c.queuedAt, began, now) {
			later = time.After(n.o.Deadline / 8)
		} else if state.CompareAndSwap(passing, passedLate) {
			out.overdue()
			record(n.late)
			return n.late
		}
	}
}

// flight is a call in flight. Once it is overdue, it no longer counts as part of a queue, so
// later calls do not wait longer because of it.
type flight struct {
	server *server
	state  atomic.Uint32
}

// The states of a flight.
const (
	flying = iota
	overdue
	landed
)

func (f *flight) overdue() {
	if f.state.CompareAndSwap(flying, overdue) {
		f.server.overdue.Add(1)
	}
}

func (f *flight) end() {
	f.server.inFlight.Add(-1)
	if !f.state.CompareAndSwap(flying, landed) {
		f.server.overdue.Add(-1)
	}
}

// recordOne counts the result of a call that began at began. For the circuit, it does not count the
// failure of a call aside, nor that of one that was only queued behind others.
func (s *server) recordOne(err error, began time.Duration, aside bool) {
	n := s.node
	if n.worked(err, 1) {
		s.good.Add(1)
		return
	}
	n.countFailure(err, 1)
	if aside { // it may be of several servers
		return
	}
	if queued := unsure(err) && n.behind(s, began, n.now()) && s.heardSince(began); !queued {
		s.fail(err, began, 1)
	}
}

func safely(ctx context.Context, do func(context.Context) error) (err error) {
	defer recovered(&err)
	return do(ctx)
}
