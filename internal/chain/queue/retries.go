package queue

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// retryQueues are the queues of limits that cannot be booked: the first in a queue asks again
// when the limit said it would have room, the others wait until they are first.
type retryQueues struct {
	waiting atomic.Int64

	mu   sync.Mutex
	byID map[queueID]*retryQueue // under mu: those with somebody in them
}

// retryQueue is the requests that wait for one counter.
type retryQueue struct {
	waiters []*member         // under retryQueues.mu, in the order they came
	refused tidegate.Decision // under retryQueues.mu: the last refusal of the first
	until   time.Time         // under retryQueues.mu: when the first asks again
}

// member is a request in a retryQueue.
type member struct {
	first   chan struct{} // closed when it is the first
	dropped chan struct{} // closed when it has lost its place to a later request
}

// take asks the store, unless others wait already, and waits in the queue if the limit of c
// refuses the request.
func (r *retryQueues) take(ctx context.Context, store tidegate.Store, checks []tidegate.Check, c *tidegate.Check) (tidegate.Decision, error) {
	terms := c.Limit.Terms.Handling.Queue
	id := queueOf(c)
	id.capacity = c.Limit.Capacity() // after a limit was raised, requests must not wait behind earlier ones
	arrived := time.Now()
	if !r.busy(id) {
		d, err := store.Take(ctx, checks, 1)
		if err != nil || d.OK || !mayWait(ctx, &d, c, terms.MaxWait) {
			return d, err
		}
		m, full := r.join(id, terms, &d)
		if full {
			return d, nil
		}
		return r.waitInQueue(ctx, store, checks, c, id, m, arrived)
	}
	m, full := r.join(id, terms, nil)
	if full {
		return r.turnedAway(id, c), nil
	}
	return r.waitInQueue(ctx, store, checks, c, id, m, arrived)
}

// mayWait reports whether a request that was refused with d may wait: the limit with the queue has
// refused it, and RetryAfter is at most most.
func mayWait(ctx context.Context, d *tidegate.Decision, c *tidegate.Check, most time.Duration) bool {
	if d.Never || d.Err != nil || d.Limit == nil || !waitsInQueueOf(d.Limit, c.Limit) || askIn(d) > most {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= askIn(d)
}

// waitsInQueueOf reports whether requests that l refuses wait in the queue of owner: l is owner, or
// owner is its Successor.
func waitsInQueueOf(l, owner *tidegate.Limit) bool {
	if l.Identity() == owner.Identity() {
		return true
	}
	return l.Terms != nil && l.Terms.Handling.Successor != nil && l.Terms.Handling.Successor.Identity() == owner.Identity()
}

// slotEvery is how often the first in a queue asks for a slot: one may be given back at any
// moment, long before its lease runs out.
const slotEvery = 20 * time.Millisecond

// askIn returns in how long to ask again after d.
func askIn(d *tidegate.Decision) time.Duration {
	if d.Limit.Algorithm == tidegate.Concurrency {
		return min(d.RetryAfter, slotEvery)
	}
	return d.RetryAfter
}

func (r *retryQueues) busy(id queueID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id] != nil
}

// join adds a request at the end of the queue, or reports that the queue is full. d is the
// refusal of a request that found no queue; it is nil if there must be one already.
func (r *retryQueues) join(id queueID, terms *tidegate.Queue, d *tidegate.Decision) (m *member, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.byID[id]
	m = &member{make(chan struct{}), make(chan struct{})}
	if q != nil && int64(len(q.waiters)) >= terms.Places {
		if !terms.DropOldest {
			return nil, true
		}
		q.waiters = append(q.waiters, m)
		for int64(len(q.waiters)) > terms.Places { // more than one if Places was reduced
			close(q.waiters[0].dropped)
			q.remove(0)
		}
		r.waiting.Add(1)
		return m, false
	}
	if q == nil {
		id.key = strings.Clone(id.key) // it may lie in memory of the request
		q = &retryQueue{}
		if r.byID == nil {
			r.byID = make(map[queueID]*retryQueue)
		}
		r.byID[id] = q
		close(m.first)
		if d != nil {
			q.refused, q.until = *d, time.Now().Add(askIn(d))
		}
	}
	q.waiters = append(q.waiters, m)
	r.waiting.Add(1)
	return m, false
}

// turnedAway returns the refusal for a request that finds no place, or has waited long enough. It is about the
// limit of c, which may be of another tier than that of the first waiter.
func (r *retryQueues) turnedAway(id queueID, c *tidegate.Check) tidegate.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := tidegate.Decision{RetryAfter: time.Second}
	if q := r.byID[id]; q != nil && q.refused.Limit != nil { // else the first has not been refused yet
		d = q.refused
		d.RetryAfter = max(time.Until(q.until), time.Millisecond)
	}
	d.OK, d.Granted, d.Remaining, d.Limit = false, 0, 0, c.Limit
	return d
}

// waitInQueue waits until m is the first, then asks whenever there should be room.
func (r *retryQueues) waitInQueue(ctx context.Context, store tidegate.Store, checks []tidegate.Check, c *tidegate.Check, id queueID, m *member, arrived time.Time) (tidegate.Decision, error) {
	defer recordWait(ctx, arrived)()
	defer r.leave(id, m)
	most := c.Limit.Terms.Handling.Queue.MaxWait
	maxWait := time.NewTimer(time.Until(arrived.Add(most)))
	defer maxWait.Stop()
	select {
	case <-m.first:
	case <-m.dropped:
		return r.refusal(id, c), nil
	case <-maxWait.C:
		return r.refusal(id, c), nil
	case <-ctx.Done():
		return tidegate.Decision{}, ctx.Err()
	}
	for {
		again := time.NewTimer(time.Until(r.again(id)))
		select {
		case <-again.C:
		case <-m.dropped:
			again.Stop()
			return r.refusal(id, c), nil
		case <-ctx.Done():
			again.Stop()
			return tidegate.Decision{}, ctx.Err()
		}
		d, err := store.Take(ctx, checks, 1)
		if err != nil || d.OK || !mayWait(ctx, &d, c, time.Until(arrived.Add(most))) {
			d.Queued = true
			return d, err
		}
		r.noteRefusal(id, &d)
	}
}

// refusal is turnedAway for a request that has waited.
func (r *retryQueues) refusal(id queueID, c *tidegate.Check) tidegate.Decision {
	d := r.turnedAway(id, c)
	d.Queued = true
	return d
}

// again returns when the first may ask again; at once if the queue is gone, which only a dropped
// waiter can find.
func (r *retryQueues) again(id queueID) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.byID[id]; q != nil {
		return q.until
	}
	return time.Time{}
}

func (r *retryQueues) noteRefusal(id queueID, d *tidegate.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q := r.byID[id]; q != nil {
		q.refused, q.until = *d, time.Now().Add(askIn(d))
	}
}

// leave removes m, unless it was dropped. The waiter that is then the first asks at once, or, if m
// has left before it asked again, when m would have.
func (r *retryQueues) leave(id queueID, m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.Add(-1)
	q := r.byID[id]
	if q == nil {
		return
	}
	if i := slices.Index(q.waiters, m); i >= 0 {
		q.remove(i)
	}
	if len(q.waiters) == 0 {
		delete(r.byID, id)
	}
}

// remove removes the waiter at index i.
func (q *retryQueue) remove(i int) {
	q.waiters = slices.Delete(q.waiters, i, i+1)
	if i == 0 && len(q.waiters) > 0 {
		close(q.waiters[0].first)
	}
}
