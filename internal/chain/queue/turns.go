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

// turns are the lines of buckets: everybody in them has a turn that is booked.
type turns struct {
	clock   Clock
	waiting atomic.Int64

	mu   sync.Mutex
	byID map[lineID]*turnLine // under mu: those with somebody in them
}

// turnLine is who waits for one counter. The turns belong to this process; who
// has which may change, as long as nobody leaves later than promised.
type turnLine struct {
	clock Clock
	store tidegate.Store
	check tidegate.Check

	mu      sync.Mutex
	waiters []*waiter // under mu: by their turns
	timer   Alarm     // under mu: for the first
	users   int       // under turns.mu: requests that hold this line
}

// turn is a departure: when it comes here, and its name in the store.
type turn struct {
	due   time.Time
	taken tidegate.Receipt
	cost  int64
}

// like reports whether whoever has t may have other instead: as many events, booked in
// the same counters. Those of the store are the same for all; it names itself as the Instance only
// to those who hold slots as well.
func (t turn) like(other turn) bool {
	if t.cost != other.cost || t.taken.Origin != other.taken.Origin {
		return false
	}
	return t.taken.Origin == tidegate.OriginStore || t.taken.Instance == other.taken.Instance
}

type waiter struct {
	turn    turn
	called  chan struct{} // closed when it is time
	dropped chan struct{} // closed when it has lost its turn to who came last
}

func newWaiter(t turn) *waiter { return &waiter{t, make(chan struct{}), make(chan struct{})} }

// wait returns when the turn booked by d has come, or an earlier one that somebody
// gave up, and how long after the booking that is. A waiter that leaves before gives up
// its turn.
func (t *turns) wait(ctx context.Context, store tidegate.Store, c *tidegate.Check, d *tidegate.Decision) (time.Duration, *turnLine, error) {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	if c == nil {
		return d.Wait, nil, sleep(ctx, t.clock, d.Wait)
	}
	id := lineOf(c)
	l := t.enter(id, store, c)
	defer t.leave(id, l)
	booked := d.Receipt
	booked.At += algo.Ticks(d.Wait)
	w := newWaiter(turn{t.clock.Now().Add(d.Wait), booked, c.Cost})
	l.join(w)
	waited, err := l.await(ctx, w, d)
	return waited, l, err
}

// await returns when w is called, and how long after the charge of d its turn was.
func (l *turnLine) await(ctx context.Context, w *waiter, d *tidegate.Decision) (time.Duration, error) {
	select {
	case <-w.called:
		l.callNext()
		return algo.Duration(w.turn.taken.At - d.Receipt.At), nil
	case <-w.dropped:
		return 0, errDropped
	case <-ctx.Done():
		l.giveUp(context.WithoutCancel(ctx), w)
		return 0, ctx.Err()
	}
}

func (t *turns) enter(id lineID, store tidegate.Store, c *tidegate.Check) *turnLine {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.byID[id]
	if l == nil {
		id.key = strings.Clone(id.key) // it may lie in memory of the request
		l = &turnLine{clock: t.clock, store: store, check: *c}
		l.check.Key = id.key
		if t.byID == nil {
			t.byID = make(map[lineID]*turnLine)
		}
		t.byID[id] = l
	}
	l.users++
	return l
}

func (t *turns) leave(id lineID, l *turnLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(t.byID, id)
	}
}

// join puts w where its turn is: two who booked at once may come here in either
// order.
func (l *turnLine) join(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joinLocked(w)
}

func (l *turnLine) joinLocked(w *waiter) {
	i := len(l.waiters)
	for i > 0 && l.waiters[i-1].turn.taken.At > w.turn.taken.At {
		i--
	}
	l.waiters = append(l.waiters, nil)
	copy(l.waiters[i+1:], l.waiters[i:])
	l.waiters[i] = w
	if i == 0 {
		l.callLocked()
	}
}

func (l *turnLine) callNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callLocked()
}

// callLocked lets the first go if its time has come, and otherwise sets the alarm
// for it. Each waiter that goes calls the next: after a pause of the machine, late waiters
// then go one after the other, and not in the order of the scheduler.
func (l *turnLine) callLocked() {
	if len(l.waiters) == 0 {
		return
	}
	in := l.waiters[0].turn.due.Sub(l.clock.Now())
	if in <= 0 {
		close(l.waiters[0].called)
		l.waiters[0] = nil
		l.waiters = l.waiters[1:]
		return
	}
	if l.timer != nil {
		l.timer.Reset(in)
		return
	}
	l.timer = l.clock.AfterFunc(in, l.callNext)
}

// giveUp takes w out of the line. Those behind it move up by one turn, up to the
// first that is not alike; the turn that nobody has then goes back to the
// store, which takes it if it is its last.
func (l *turnLine) giveUp(ctx context.Context, w *waiter) {
	l.mu.Lock()
	select {
	case <-w.dropped: // its turn is another's
		l.mu.Unlock()
		return
	default:
	}
	free := w.turn
	if i := slices.Index(l.waiters, w); i >= 0 {
		free = l.freeLocked(i)
	} // else its turn came at the same moment: it is used up unless it still counts
	l.callLocked()
	l.mu.Unlock()
	back := l.check
	back.Cost = -free.cost
	_ = l.store.Adjust(ctx, free.taken, []tidegate.Check{back}) // not reached: a hole in the line
}

// freeLocked takes out who is at i, lets those behind move up, and returns the turn that nobody
// has then.
func (l *turnLine) freeLocked(i int) (free turn) {
	free = l.waiters[i].turn
	for j := i + 1; j < len(l.waiters) && l.waiters[j].turn.like(free); j++ {
		l.waiters[j].turn, free = free, l.waiters[j].turn
	}
	l.waiters = slices.Delete(l.waiters, i, i+1)
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
