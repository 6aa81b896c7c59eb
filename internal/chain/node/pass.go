package node

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// pass calls the backend by the deadline, unless the circuit is open. It is not tried
// again, whatever comes of it.
func (n *Node) pass(ctx context.Context, do func(context.Context) error) error {
	if n.share.Load() == 0 {
		return *n.why.Load()
	}
	return n.reach(ctx, false, do)
}

// The states of a call that is not Take's.
const (
	passing     = iota
	passed      // it has a result
	passedLate  // it was given up at the deadline, and counted as a failure
	passedAlone // its caller has left: how it ends is still to be counted
)

// reach is pass even if the circuit is open. What is done aside is for no request.
func (n *Node) reach(ctx context.Context, aside bool, do func(context.Context) error) error {
	return n.reachBy(ctx, n.contexts.deadline.get(n, n.o.Deadline), aside, do)
}

// reachBy is reach by another deadline than that of requests.
func (n *Node) reachBy(ctx, until context.Context, aside bool, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began := n.now()
	record := func(err error) { n.record(err, began, 1, aside) }
	if !n.begin() {
		record(ErrBusy)
		return ErrBusy
	}
	var state atomic.Uint32
	done := make(chan error, 1)
	go func() {
		err := safely(within{until, ctx}, do)
		n.inFlight.Add(-1)
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
	if r.Origin != tidegate.OriginStore {
		return n.adjustLocal(ctx, r, checks)
	}
	checks = copied(checks)
	err := n.pass(ctx, func(ctx context.Context) error {
		defer n.returned(checks)
		return n.inner.Adjust(ctx, r, checks)
	})
	if err != nil && releases(checks) {
		n.releaseLater(r, checks)
	}
	return err
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

func (n *Node) adjustLocal(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	nodes, now := n.nodes(), n.now()
	p := n.localPart(checks, nodes)
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
	if r.Origin != tidegate.OriginStore {
		return n.local.Renew(ctx, r, n.localPart(checks, n.nodes()).checks)
	}
	checks = copied(checks)
	return n.pass(ctx, func(ctx context.Context) error { return n.inner.Renew(ctx, r, checks) })
}

// Reserve implements tidegate.Reserver. There is no fallback: what cannot be settled
// cannot be reserved, and the caller says what becomes of the request.
func (n *Node) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, string, error) {
	if _, ok := traitsOf(checks); !ok || ttl <= 0 {
		return n.local.Reserve(ctx, checks, ttl) // says what is wrong
	}
	type answer struct {
		checks []tidegate.Check
		d      tidegate.Decision
		id     string
	}
	a := &answer{checks: copied(checks)}
	now := n.now()
	err := n.pass(ctx, func(ctx context.Context) (err error) {
		a.d, a.id, err = n.inner.Reserve(ctx, a.checks, ttl)
		return err
	})
	if err != nil {
		return tidegate.Decision{}, "", err
	}
	for i := range checks {
		checks[i].Over = a.checks[i].Over
	}
	n.see(checks, &a.d, now)
	return a.d, a.id, nil
}

// Settle implements tidegate.Reserver. Whose it is only the backend knows; what it gives
// back may be refused for up to a second more.
func (n *Node) Settle(ctx context.Context, id string, actual int64) error {
	if actual < 0 {
		return n.local.Settle(ctx, id, actual) // says what is wrong
	}
	id = strings.Clone(id)
	return n.pass(ctx, func(ctx context.Context) error { return n.inner.Settle(ctx, id, actual) })
}

// Reset implements tidegate.Resetter. What this node knows of the keys is forgotten
// whether the backend can be reached or not, and so is every refusal, those of calls
// that are out included.
func (n *Node) Reset(ctx context.Context, checks []tidegate.Check) error {
	checks = copied(checks)
	err := n.pass(ctx, func(ctx context.Context) error {
		defer n.Forget()
		return n.inner.Reset(ctx, checks)
	})
	n.forget(ctx, checks)
	return err
}

func (n *Node) forget(ctx context.Context, checks []tidegate.Check) {
	n.mu.Lock()
	n.backlog.forget(checks)
	n.mu.Unlock()
	for _, c := range checks {
		name := n.seen.name(c.Limit, c.Key)
		_, _, word := n.seen.look(name)
		n.seen.forget(name, word)
	}
	_ = n.local.Reset(ctx, checks) // limits that the backend takes, it takes
	n.Forget()
}
