package queue

import (
	"context"
	"errors"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// errDropped is returned to a waiter that has lost its turn to a later request; see
// [tidegate.Queue].DropOldest.
var errDropped = errors.New("queue: a later request has the place")

// drops returns the check whose booked queue was full, if its rule says DropOldest; otherwise nil.
func drops(checks []tidegate.Check, d *tidegate.Decision) *tidegate.Check {
	c := booked(checks)
	if c == nil || c.Unattended || c.Cost <= 0 || c.Limit.Terms == nil || d.Never || d.Err != nil || d.Limit == nil {
		return nil
	}
	if q := c.Limit.Terms.Handling.Queue; q == nil || !q.DropOldest || d.Limit.Identity() != c.Limit.Identity() {
		return nil
	}
	return c
}

// takeOver queues a request that the store has refused, in place of the oldest waiter in this
// process: that waiter is dropped, the others move up by a turn, and the request gets the last
// turn. The store is asked again, but only about the other limits of the request. The refusal
// stands if no waiter here has the same cost.
func (s *Store) takeOver(ctx context.Context, checks []tidegate.Check, c *tidegate.Check, refused tidegate.Decision) (tidegate.Decision, error) {
	others := without(checks, c)
	d := tidegate.Decision{OK: true, Granted: 1, Limit: c.Limit}
	if len(others) > 0 {
		var err error
		if d, err = s.Backend.Take(ctx, others, 1); err != nil || !d.OK {
			return d, err
		}
		copyOver(checks, c, others)
	}
	defer recordWait(ctx, time.Now())()
	s.turns.waiting.Add(1)
	defer s.turns.waiting.Add(-1)
	id := queueOf(c)
	q := s.turns.enter(id, s.Backend, c)
	defer s.turns.leave(id, q)
	w := q.replaceFirst(c.Cost, len(others) > 0, &d.Receipt)
	if w == nil {
		s.giveBack(ctx, d.Receipt, others)
		return refused, nil
	}
	defer s.renewSlots(ctx, d.Receipt, others)()
	waited, err := q.await(ctx, w, &d)
	if errors.Is(err, errDropped) {
		return s.dropped(ctx, q, others, c, &d), nil
	}
	if err != nil {
		s.freeSlots(context.WithoutCancel(ctx), d.Receipt, others)
		return tidegate.Decision{}, err
	}
	d.Waited, d.Queued = waited, true
	return d, nil
}

// without returns checks except c, which is one of them.
func without(checks []tidegate.Check, c *tidegate.Check) []tidegate.Check {
	others := make([]tidegate.Check, 0, len(checks))
	for i := range checks {
		if &checks[i] != c {
			others = append(others, checks[i])
		}
	}
	return others
}

// copyOver copies Over of others, which are checks without c, into checks.
func copyOver(checks []tidegate.Check, c *tidegate.Check, others []tidegate.Check) {
	at := 0
	for i := range checks {
		if &checks[i] != c {
			checks[i].Over = others[at].Over
			at++
		}
	}
}

// dropped returns the refusal for a waiter that has lost its turn, and gives back what it was
// charged for others, its other checks: a refusal charges nothing.
func (s *Store) dropped(ctx context.Context, q *turnQueue, others []tidegate.Check, c *tidegate.Check, d *tidegate.Decision) tidegate.Decision {
	s.giveBack(ctx, d.Receipt, others)
	return tidegate.Decision{Limit: c.Limit, RetryAfter: q.nextIn(), Receipt: d.Receipt, Queued: true}
}

// giveBack returns what a Take has charged. If the store fails, it stays charged.
func (s *Store) giveBack(ctx context.Context, taken tidegate.Receipt, charged []tidegate.Check) {
	var back []tidegate.Check
	for _, c := range charged {
		if c.Cost > 0 && !(c.Advisory && c.Over) {
			c.Cost = -c.Cost
			back = append(back, c)
		}
	}
	if len(back) > 0 {
		_ = s.Adjust(context.WithoutCancel(ctx), taken, back)
	}
}

// replaceFirst drops the first waiter, and returns a new waiter with the turn that becomes free; nil
// if the first has another cost. taken is the receipt of the new waiter's other charges; if charged
// is false there are none, and taken is set as if the turn had been booked now.
func (q *turnQueue) replaceFirst(cost int64, charged bool, taken *tidegate.Receipt) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		return nil
	}
	first := q.waiters[0]
	if first.turn.cost != cost || charged && !first.turn.like(turn{taken: *taken, cost: cost}) {
		return nil
	}
	w := newWaiter(q.freeLocked(0))
	close(first.dropped)
	if !charged {
		*taken = w.turn.taken
		taken.At -= algo.Ticks(max(0, w.turn.due.Sub(q.clock.Now())))
	}
	q.joinLocked(w)
	q.callLocked()
	return w
}

// nextIn returns in how long the next waiter leaves the queue and makes room.
func (q *turnQueue) nextIn() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		return time.Millisecond
	}
	return max(q.waiters[0].turn.due.Sub(q.clock.Now()), time.Millisecond)
}
