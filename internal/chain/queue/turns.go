package queue

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/algo"
)

// turns are the queues of buckets: every waiter in them has a booked turn.
type turns struct {
	clock   Clock
	waiting atomic.Int64

	mu   sync.Mutex
	byID map[queueID]*turnQueue // under mu: those with somebody in them
}

// turnQueue is the waiters for one counter. The turns belong to this process, which may exchange
// them among waiters, as long as nobody leaves later than promised.
type turnQueue struct {
	clock Clock
	store tidegate.Store
	check tidegate.Check

	mu      sync.Mutex
	waiters []*waiter // under mu: by their turns
	timer   Alarm     // under mu: calls the first when its turn comes
	users   int       // under turns.mu: requests that hold this queue
}

// turn is a booked turn: when it is due by the clock of this process, and its receipt.
type turn struct {
	due   time.Time
	taken tidegate.Receipt
	cost  int64
}

// like reports whether t and other can be exchanged: they are for as many events, booked in the
// same counters. Instance is not compared with that of a shared store, which sets it only for
// requests that also hold slots.
func (t turn) like(other turn) bool {
	if t.cost != other.cost || t.taken.Origin != other.taken.Origin {
		return false
	}
	return t.taken.Origin == tidegate.OriginStore || t.taken.Instance == other.taken.Instance
}

type waiter struct {
	turn    turn
	called  chan struct{} // closed when it is time
	dropped chan struct{} // closed when it has lost its turn to a later request
}

func newWaiter(t turn) *waiter { return &waiter{t, make(chan struct{}), make(chan struct{})} }

// wait waits until the turn booked by d comes, or an earlier one that another waiter has given up.
// It returns how long after the booking the turn is due. A waiter whose ctx ends before gives up
// its turn.
func (t *turns) wait(ctx context.Context, store tidegate.Store, c *tidegate.Check, d *tidegate.Decision) (time.Duration, *turnQueue, error) {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	if c == nil {
		return d.Wait, nil, sleep(ctx, t.clock, d.Wait)
	}
	id := queueOf(c)
	q := t.enter(id, store, c)
	defer t.leave(id, q)
	booked := d.Receipt
	booked.At += algo.Ticks(d.Wait)
	w := newWaiter(turn{t.clock.Now().Add(d.Wait), booked, c.Cost})
	q.join(w)
	waited, err := q.await(ctx, w, d)
	return waited, q, err
}

// await waits until w is called, and returns how long after the charge of d its turn is due.
func (q *turnQueue) await(ctx context.Context, w *waiter, d *tidegate.Decision) (time.Duration, error) {
	select {
	case <-w.called:
		q.callNext()
		return algo.Duration(w.turn.taken.At - d.Receipt.At), nil
	case <-w.dropped:
		return 0, errDropped
	case <-ctx.Done():
		q.giveUp(context.WithoutCancel(ctx), w)
		return 0, ctx.Err()
	}
}

func (t *turns) enter(id queueID, store tidegate.Store, c *tidegate.Check) *turnQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.byID[id]
	if q == nil {
		id.key = strings.Clone(id.key) // it may lie in memory of the request
		q = &turnQueue{clock: t.clock, store: store, check: *c}
		q.check.Key = id.key
		if t.byID == nil {
			t.byID = make(map[queueID]*turnQueue)
		}
		t.byID[id] = q
	}
	q.users++
	return q
}

func (t *turns) leave(id queueID, q *turnQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.byID, id)
	}
}

// join adds w in the order of turns: two requests that booked at the same time may come here in
// either order.
func (q *turnQueue) join(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.joinLocked(w)
}

func (q *turnQueue) joinLocked(w *waiter) {
	i := len(q.waiters)
	for i > 0 && q.waiters[i-1].turn.taken.At > w.turn.taken.At {
		i--
	}
	q.waiters = append(q.waiters, nil)
	copy(q.waiters[i+1:], q.waiters[i:])
	q.waiters[i] = w
	if i == 0 {
		q.callLocked()
	}
}

func (q *turnQueue) callNext() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.callLocked()
}

// callLocked lets the first waiter go if its turn has come, and otherwise sets the timer for it.
// Each waiter that goes calls the next: so after a pause of the machine, late waiters still go in
// their order, not in that of the scheduler.
func (q *turnQueue) callLocked() {
	if len(q.waiters) == 0 {
		return
	}
	in := q.waiters[0].turn.due.Sub(q.clock.Now())
	if in <= 0 {
		close(q.waiters[0].called)
		q.waiters[0] = nil
		q.waiters = q.waiters[1:]
		return
	}
	if q.timer != nil {
		q.timer.Reset(in)
		return
	}
	q.timer = q.clock.AfterFunc(in, q.callNext)
}

// giveUp removes w from the queue. The waiters behind it move up by one turn, up to the first
// whose turn is not like the others; the turn that is left over goes back to the store, which
// frees it if it is the last one there.
func (q *turnQueue) giveUp(ctx context.Context, w *waiter) {
	q.mu.Lock()
	select {
	case <-w.dropped: // its turn is another's
		q.mu.Unlock()
		return
	default:
	}
	free := w.turn
	if i := slices.Index(q.waiters, w); i >= 0 {
		free = q.freeLocked(i)
	} // otherwise its turn has just come: the store frees it only if it still counts
	q.callLocked()
	q.mu.Unlock()
	back := q.check
	back.Cost = -free.cost
	_ = q.store.Adjust(ctx, free.taken, []tidegate.Check{back}) // if it fails, the turn stays unused
}

// freeLocked removes the waiter at i, lets those behind it move up, and returns the turn that is left
// over.
func (q *turnQueue) freeLocked(i int) (free turn) {
	free = q.waiters[i].turn
	for j := i + 1; j < len(q.waiters) && q.waiters[j].turn.like(free); j++ {
		q.waiters[j].turn, free = free, q.waiters[j].turn
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return free
}

func sleep(ctx context.Context, clock Clock, d time.Duration) error {
	over := make(chan struct{})
	t := clock.AfterFunc(d, func() { close(over) })
	defer t.Stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
