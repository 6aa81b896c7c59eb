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

// retryQueue is who waits for one counter.
type retryQueue struct {
	waiters []*member         // under retryQueues.mu, in the order they came
	refused tidegate.Decision // under retryQueues.mu: what the first was last told
	until   time.Time         // under retryQueues.mu: when the first asks again
}

// member is a request in a retryQueue.
type member struct {
	first   chan struct{} // closed when it is the first
	dropped chan struct{} // closed when it has lost its place to who came last
}

// take asks the store, unless others wait already, and waits in the queue if the limit of c
// refuses.
func (r *retryQueues) take(ctx context.Context, store tidegate.Store, checks []tidegate.Check, c *tidegate.Check) (tidegate.Decision, error) {
	terms := c.Limit.Terms.Handling.Queue
	id := queueOf(c)
	id.capacity = c.Limit.Capacity() // a limit that was raised must not wait for those of before
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
		return r.turnedAway(id), nil
	}
	return r.waitInQueue(ctx, store, checks, c, id, m, arrived)
}

// mayWait reports whether a request that was refused with d may wait: the limit that has the
// queue refused it, and for no longer than most.
func mayWait(ctx context.Context, d *tidegate.Decision, c *tidegate.Check, most time.Duration) bool {
	if d.Never || d.Err != nil || d.Limit == nil || !waitsInQueueOf(d.Limit, c.Limit) || askIn(d) > most {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= askIn(d)
}

// waitsInQueueOf reports whether requests that l refuses wait in the queue of owner: l is that
// limit, or the one from before in whose place that has come.
func waitsInQueueOf(l, owner *tidegate.Limit) bool {
	if l.Identity() == owner.Identity() {
		return true
	}
	return l.Terms != nil && l.Terms.Handling.Successor != nil && l.Terms.Handling.Successor.Identity() == owner.Identity()
}

// slotEvery is how often the first in a queue asks for a slot: whoever has one may
// give it back at any moment, long before its lease runs out.
const slotEvery = 20 * time.Millisecond

// askIn is when to ask again.
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

// join takes a place at the end, or reports that there is none. d is what the
// store said to a request that found no queue; nil if there is one.
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
		for int64(len(q.waiters)) > terms.Places { // one, or more if there were more places before
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

// turnedAway is the answer to who finds no place, or has waited long enough.
func (r *retryQueues) turnedAway(id queueID) tidegate.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := tidegate.Decision{RetryAfter: time.Second}
	if q := r.byID[id]; q != nil && q.refused.Limit != nil {
		d = q.refused
		d.RetryAfter = max(time.Until(q.until), time.Millisecond)
	}
	d.OK, d.Granted, d.Remaining = false, 0, 0
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

// refusal is turnedAway for a request that waited, in terms of the limit of c, which may be
// that of another tier than the first's.
func (r *retryQueues) refusal(id queueID, c *tidegate.Check) tidegate.Decision {
	d := r.turnedAway(id)
	d.Limit, d.Queued = c.Limit, true
	return d
}

// again is when to ask; at once if the queue is gone, which only a dropped waiter may find.
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

// leave takes m out, unless it was dropped; whoever is first then asks at once.
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

// remove takes out who has place i.
func (q *retryQueue) remove(i int) {
	q.waiters = slices.Delete(q.waiters, i, i+1)
	if i == 0 && len(q.waiters) > 0 {
		close(q.waiters[0].first)
	}
}
