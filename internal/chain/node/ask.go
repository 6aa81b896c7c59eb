package node

import (
	"context"
	"math"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// ask joins the next call for the same checks, or makes one, and waits for the answer. It
// falls back if there is none in time.
func (n *Node) ask(ctx context.Context, checks []tidegate.Check, copies int, t traits, now time.Duration, to *tidegate.Decision) (err error) {
	hash, until := n.hash(checks), n.until(ctx)
	sh := &n.shards[hash%shards]
	sh.mu.Lock()
	sh.asked++
	s := sh.findLocked(hash, checks, t)
	if s == nil {
		s = n.newStreamLocked(sh, hash, checks, copies, t)
	}
	c := s.next
	if c == nil {
		if c = n.newCallLocked(s); c == nil {
			n.failed(s, ErrBusy, now, 1)
			if s.calls == 0 {
				n.endLocked(s)
			}
			sh.mu.Unlock()
			*to, err = n.fallBack(ctx, checks, copies, ErrBusy)
			return err
		}
	}
	deadline := now + n.o.Deadline
	i := c.joinLocked(deadline)
	if t&coalescible == 0 {
		c.sole = checks
	}
	n.stepLocked(s, coalesceEvent{kind: arrived, now: now, leave: n.leave(s, now, until)})
	ring, watching := deadline, i < crowded || until <= now+unwatched
	if co := &s.coalescer; co.waiting > 0 && !co.queued {
		ring = min(ring, co.leave)
	}
	if !watching {
		ring = min(ring, now+unwatched)
	}
	n.alarmLocked(sh, ring)
	return n.awaitLocked(ctx, watching, sh, c, i, checks, copies, to)
}

// If a call has at least crowded waiters, a further one does not watch its context until it has
// waited for the time unwatched: a select on two channels costs as much as all else that it does.
// It then notices the end of its context late, by up to that time.
const (
	crowded   = 16
	unwatched = 2 * time.Millisecond
)

// until returns the deadline of a context, as Node.now counts; far in the future if it has none.
func (n *Node) until(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return at.Sub(n.start)
	}
	return math.MaxInt64
}

// leave returns when a call has to leave to be back by the deadline of the Node, or by that of its
// caller if that is earlier. The deadline of a caller that has less time than a round trip takes
// is ignored: the caller would be gone anyway.
func (n *Node) leave(s *stream, now, until time.Duration) time.Duration {
	reserve := time.Duration(s.server.reserve.Load())
	deadline := now + n.o.Deadline
	if until < deadline && until >= now+time.Duration(s.server.trip.Load()) {
		deadline = until
	}
	return deadline - reserve
}

// awaitLocked waits for the answer to waiter i of c. If watching is false, it watches ctx only after
// watchLocked has woken it. It unlocks the shard.
func (n *Node) awaitLocked(ctx context.Context, watching bool, sh *shard, c *call, i int, checks []tidegate.Check, copies int, to *tidegate.Decision) (err error) {
	wake := c.wake
	sh.mu.Unlock()
	left, early := chain.Waits(ctx)
	for {
		switch {
		case !watching || left == nil && early == nil:
			<-wake
		case early == nil:
			select {
			case <-wake:
			case <-left:
			}
		default:
			select {
			case <-wake:
			case <-left:
			case <-early:
			}
		}
		if c.done.Load() {
			return n.answered(ctx, c, i, checks, copies, to)
		}
		sh.mu.Lock()
		switch {
		case c.done.Load():
			sh.mu.Unlock()
			return n.answered(ctx, c, i, checks, copies, to)
		case c.place(i) < c.served: // c is not done: other waiters have no answer yet
			d, _ := c.answer(i)
			*to = *d
			sh.mu.Unlock()
			return nil
		case chain.FallsBack(ctx):
			*to, err = n.decideEarlyLocked(sh, c, i, checks, copies)
			return err
		case ctx.Err() != nil:
			n.leaveLocked(c, i)
			sh.mu.Unlock()
			return ctx.Err()
		case i < c.expired:
			*to, err = n.decideLateLocked(sh, c, i, checks, copies)
			return err
		}
		watching = watching || i < c.watched
		wake = c.wake
		sh.mu.Unlock()
	}
}

// answered returns the answer to a waiter of a call that is done; if that is an error, a fallback decides.
func (n *Node) answered(ctx context.Context, c *call, i int, checks []tidegate.Check, copies int, to *tidegate.Decision) error {
	d, err := c.answer(i)
	*to = *d
	n.release(c)
	if err != nil {
		*to, err = n.fallBack(ctx, checks, copies, err)
	}
	return err
}

// leaveLocked removes a waiter from its call. A call that has no waiters left, and is not queued to
// be sent, ends.
func (n *Node) leaveLocked(c *call, i int) {
	c.leaveLocked(i)
	s := c.stream
	if c.sent {
		n.giveUpLocked(c)
		return
	}
	n.stepLocked(s, coalesceEvent{kind: left})
	if c.waiting() == 0 && !s.coalescer.queued {
		n.endCallLocked(c)
	}
}

// decideLateLocked decides locally for a waiter whose deadline has passed. What is admitted goes
// to the backlog if the call was never sent; otherwise the reply, when it comes, shows whether it
// has to. It unlocks the shard.
func (n *Node) decideLateLocked(sh *shard, c *call, i int, checks []tidegate.Check, copies int) (tidegate.Decision, error) {
	began := c.deadlines[i] - n.o.Deadline
	if c.sent && !n.queued(c, n.now()) {
		n.failed(c.stream, n.late, began, 1)
	} else {
		n.countFailure(n.late, 1)
	}
	return n.decideLeavingLocked(sh, c, i, checks, copies)
}

// decideEarlyLocked is decideLateLocked for a caller whose own deadline is shorter. That is no failure
// of the backend yet; overdueLocked records one if there is no reply by the deadline of the Node.
func (n *Node) decideEarlyLocked(sh *shard, c *call, i int, checks []tidegate.Check, copies int) (tidegate.Decision, error) {
	n.countFailure(n.late, 1)
	c.early = c.early || c.sent
	return n.decideLeavingLocked(sh, c, i, checks, copies)
}

// decideLeavingLocked decides locally for a waiter that leaves its call. It unlocks the shard.
func (n *Node) decideLeavingLocked(sh *shard, c *call, i int, checks []tidegate.Check, copies int) (tidegate.Decision, error) {
	out := c.sent
	n.leaveLocked(c, i)
	if out {
		c.late.undecided += int64(copies)
	}
	sh.mu.Unlock()
	d, admitted, err := n.decideLocally(checks, copies, n.late, n.now(), !out)
	if !out {
		return d, err
	}
	sh.mu.Lock()
	refused := int64(copies)
	if d.OK {
		refused -= d.Granted
	}
	uncharged, unused := c.late.decidedLocked(int64(copies), admitted, refused)
	unneeded := c.late.grant
	sh.mu.Unlock()
	if uncharged > 0 {
		n.addToBacklog(checks, uncharged)
	}
	if unused > 0 {
		n.refund(unneeded, unused)
	}
	return d, err
}
