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

// lines are those of limits that cannot be booked: the first in line asks again
// when the limit said it would have room, the others wait for being first.
type lines struct {
	waiting atomic.Int64

	mu   sync.Mutex
	byID map[lineID]*waitingLine // under mu: those with somebody in them
}

// waitingLine is who waits for one counter.
type waitingLine struct {
	waiters []*member         // under lines.mu, in the order they came
	refused tidegate.Decision // under lines.mu: what the first was last told
	until   time.Time         // under lines.mu: when the first asks again
}

// member is a request in line.
type member struct {
	first   chan struct{} // closed when it is the first
	dropped chan struct{} // closed when it has lost its place to who came last
}

// take asks the store, unless others wait already, and waits in line if refused
// by the limit of c.
func (q *lines) take(ctx context.Context, store tidegate.Store, checks []tidegate.Check, c *tidegate.Check) (tidegate.Decision, error) {
	terms := c.Limit.Terms.Handling.Queue
	id := lineOf(c)
	id.capacity = c.Limit.Capacity() // a limit that was raised must not wait for those of before
	arrived := time.Now()
	if !q.busy(id) {
		d, err := store.Take(ctx, checks, 1)
		if err != nil || d.OK || !mayWait(ctx, &d, c, terms.MaxWait) {
			return d, err
		}
		m, full := q.join(id, terms, &d)
		if full {
			return d, nil
		}
		return q.waitInLine(ctx, store, checks, c, id, m, arrived)
	}
	m, full := q.join(id, terms, nil)
	if full {
		return q.turnedAway(id), nil
	}
	return q.waitInLine(ctx, store, checks, c, id, m, arrived)
}

// mayWait: it was refused by the limit that has the line, and not for longer
// than anybody may wait.
func mayWait(ctx context.Context, d *tidegate.Decision, c *tidegate.Check, most time.Duration) bool {
	if d.Never || d.Err != nil || d.Limit == nil || !standsFor(d.Limit, c.Limit) || askIn(d) > most {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= askIn(d)
}

// standsFor reports whether requests that l refuses wait in the queue of line: l is that
// limit, or names it as InLineOf.
func standsFor(l, line *tidegate.Limit) bool {
	if l.Identity() == line.Identity() {
		return true
	}
	return l.Terms != nil && l.Terms.Handling.InLineOf != nil && l.Terms.Handling.InLineOf.Identity() == line.Identity()
}

// slotEvery is how often the first in line asks for a slot: whoever has one may
// give it back at any moment, long before its lease runs out.
const slotEvery = 20 * time.Millisecond

// askIn is when to ask again.
func askIn(d *tidegate.Decision) time.Duration {
	if d.Limit.Algorithm == tidegate.Concurrency {
		return min(d.RetryAfter, slotEvery)
	}
	return d.RetryAfter
}

func (q *lines) busy(id lineID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.byID[id] != nil
}

// join takes a place at the end, or reports that there is none. d is what the
// store said to who found no line.
func (q *lines) join(id lineID, terms *tidegate.Queue, d *tidegate.Decision) (m *member, full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byID[id]
	m = &member{make(chan struct{}), make(chan struct{})}
	if l != nil && int64(len(l.waiters)) >= terms.Places {
		if !terms.DropOldest {
			return nil, true
		}
		l.waiters = append(l.waiters, m)
		for int64(len(l.waiters)) > terms.Places { // one, or more if there were more places before
			close(l.waiters[0].dropped)
			l.remove(0)
		}
		q.waiting.Add(1)
		return m, false
	}
	if l == nil {
		id.key = strings.Clone(id.key) // it may lie in memory of the request
		l = &waitingLine{}
		if q.byID == nil {
			q.byID = make(map[lineID]*waitingLine)
		}
		q.byID[id] = l
		close(m.first)
		if d != nil {
			l.refused, l.until = *d, time.Now().Add(askIn(d))
		}
	}
	l.waiters = append(l.waiters, m)
	q.waiting.Add(1)
	return m, false
}

// turnedAway is the answer to who finds no place, or has waited long enough.
func (q *lines) turnedAway(id lineID) tidegate.Decision {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := tidegate.Decision{RetryAfter: time.Second}
	if l := q.byID[id]; l != nil && l.refused.Limit != nil {
		d = l.refused
		d.RetryAfter = max(time.Until(l.until), time.Millisecond)
	}
	d.OK, d.Granted, d.Remaining = false, 0, 0
	return d
}

// waitInLine waits until m is the first, then asks whenever there should be room.
func (q *lines) waitInLine(ctx context.Context, store tidegate.Store, checks []tidegate.Check, c *tidegate.Check, id lineID, m *member, arrived time.Time) (tidegate.Decision, error) {
	defer stand(ctx, arrived)()
	defer q.leave(id, m)
	most := c.Limit.Terms.Handling.Queue.MaxWait
	maxWait := time.NewTimer(time.Until(arrived.Add(most)))
	defer maxWait.Stop()
	select {
	case <-m.first:
	case <-m.dropped:
		return q.refusal(id, c), nil
	case <-maxWait.C:
		return q.refusal(id, c), nil
	case <-ctx.Done():
		return tidegate.Decision{}, ctx.Err()
	}
	for {
		again := time.NewTimer(time.Until(q.again(id)))
		select {
		case <-again.C:
		case <-m.dropped:
			again.Stop()
			return q.refusal(id, c), nil
		case <-ctx.Done():
			again.Stop()
			return tidegate.Decision{}, ctx.Err()
		}
		d, err := store.Take(ctx, checks, 1)
		if err != nil || d.OK || !mayWait(ctx, &d, c, time.Until(arrived.Add(most))) {
			d.Queued = true
			return d, err
		}
		q.noteRefusal(id, &d)
	}
}

// refusal is turnedAway for who stood in line, in terms of the limit of c, which may be
// that of another tier than the first's.
func (q *lines) refusal(id lineID, c *tidegate.Check) tidegate.Decision {
	d := q.turnedAway(id)
	d.Limit, d.Queued = c.Limit, true
	return d
}

// again is when to ask; at once if the line is gone, which only a dropped waiter may find.
func (q *lines) again(id lineID) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byID[id]; l != nil {
		return l.until
	}
	return time.Time{}
}

func (q *lines) noteRefusal(id lineID, d *tidegate.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byID[id]; l != nil {
		l.refused, l.until = *d, time.Now().Add(askIn(d))
	}
}

// leave takes m out, unless it was dropped; whoever is first then asks at once.
func (q *lines) leave(id lineID, m *member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.Add(-1)
	l := q.byID[id]
	if l == nil {
		return
	}
	if i := slices.Index(l.waiters, m); i >= 0 {
		l.remove(i)
	}
	if len(l.waiters) == 0 {
		delete(q.byID, id)
	}
}

// remove takes out who has place i.
func (l *waitingLine) remove(i int) {
	l.waiters = slices.Delete(l.waiters, i, i+1)
	if i == 0 && len(l.waiters) > 0 {
		close(l.waiters[0].first)
	}
}
