package queue

import (
	"context"
	"errors"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// errDropped is told to who has lost its turn to a request that came later; see
// [tidegate.Queue].DropOldest.
var errDropped = errors.New("queue: a later request has the place")

// drops returns the check whose booked queue was full, if its rule has the oldest make room.
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

// takeOver gives the request a turn of those that wait here, at the end of the queue: the first
// of them is dropped, and the others move up. The store was asked and has refused; it is asked
// again about the other limits of the request alone. Where nobody waits here that costs
// as much, the refusal stands.
func (s *Store) takeOver(ctx context.Context, checks []tidegate.Check, c *tidegate.Check, refused tidegate.Decision) (tidegate.Decision, error) {
	others := without(checks, c)
	d := tidegate.Decision{OK: true, Granted: 1, Limit: c.Limit}
	if len(others) > 0 {
		var err error
		if d, err = s.Backend.Take(ctx, others, 1); err != nil || !d.OK {
			return d, err
		}
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

// without returns the checks but c, which is one of them.
func without(checks []tidegate.Check, c *tidegate.Check) []tidegate.Check {
	others := make([]tidegate.Check, 0, len(checks))
	for i := range checks {
		if &checks[i] != c {
			others = append(others, checks[i])
		}
	}
	return others
}

// dropped is the answer to who has lost its turn. Its other charges, of others, go back: a
// refusal charges nothing.
func (s *Store) dropped(ctx context.Context, q *turnQueue, others []tidegate.Check, c *tidegate.Check, d *tidegate.Decision) tidegate.Decision {
	s.giveBack(ctx, d.Receipt, others)
	return tidegate.Decision{Limit: c.Limit, RetryAfter: q.nextIn(), Receipt: d.Receipt, Queued: true}
}

// giveBack returns what a Take has charged; if the store fails, it stays charged.
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

// replaceFirst drops who waits longest and returns a waiter with the turn that is free then; nil if
// the first is of another cost. taken is when the newcomer was charged elsewhere; if it was not,
// it is written, as if the turn had been booked now.
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

// nextIn is when the next leaves the queue, and makes room.
func (q *turnQueue) nextIn() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiters) == 0 {
		return time.Millisecond
	}
	return max(q.waiters[0].turn.due.Sub(q.clock.Now()), time.Millisecond)
}
