package cluster

import (
	"context"
	"sync/atomic"
	"time"
)

// end is when a caller no longer waits. Those who wait do so for one thing, a broadcast:
// to wait for one of two channels costs twice as much, which is a large part of what a
// request for a busy key costs at all. When a context ends, all are woken who may wait
// under it, and look for themselves.
type end struct {
	ctx   context.Context
	done  <-chan struct{} // of ctx
	own   context.Context // of the Store, for callers without a deadline; nil otherwise
	stops [2]func() bool  // what was set up for this caller alone
}

// watch is of a context that several callers wait under: one function is called at its
// end, not one for each of them. Under internal/guard, all who come within some
// milliseconds have contexts that end together.
type watch struct {
	done <-chan struct{}
	soon bool // it ends
	set  atomic.Bool
}

// endOf sees to it that who waits in a lane is woken when ctx ends, or the deadline is
// over that a caller without one has. It is to be called before the lane is locked.
func (s *Store) endOf(ctx context.Context, at *lane) end {
	e := end{ctx: ctx, done: ctx.Done()}
	if e.done != nil {
		e.stops[0] = s.watch(ctx, e.done, at, &s.ends)
	}
	if _, ok := ctx.Deadline(); !ok {
		e.own = s.deadline()
		e.stops[1] = s.watch(e.own, e.own.Done(), at, &s.lates)
	}
	return e
}

// watch has those in a lane woken at the end of ctx, and returns what undoes that; nil:
// it need not be undone. last is the latest of the watches.
func (s *Store) watch(ctx context.Context, done <-chan struct{}, at *lane, last *atomic.Pointer[watch]) (stop func() bool) {
	w := last.Load()
	if w == nil || w.done != done { // perhaps the first of several
		until, ok := ctx.Deadline()
		last.Store(&watch{done: done, soon: ok && time.Until(until) < 2*s.o.Deadline})
		return context.AfterFunc(ctx, at.wakes)
	}
	if !w.soon { // what is set up for it would stay
		return context.AfterFunc(ctx, at.wakes)
	}
	if !w.set.Load() && w.set.CompareAndSwap(false, true) {
		context.AfterFunc(ctx, func() { s.wake(done) })
	}
	return nil
}

// reached is why the caller no longer waits; nil: it does.
func (s *Store) reached(e *end) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if e.own != nil && e.own.Err() != nil {
		return s.late
	}
	return nil
}

func (e *end) forget() {
	for _, stop := range e.stops {
		if stop != nil {
			stop()
		}
	}
}

// wake has all who may wait under a context look whether they still do.
func (s *Store) wake(done <-chan struct{}) {
	for i := range s.lanes {
		s.lanes[i].wake(func(l *leg) bool { return l.mixed || l.ends == done })
	}
}

func (at *lane) wake(which func(*leg) bool) {
	at.mu.Lock()
	defer at.mu.Unlock()
	for f := at.first; f != nil; f = f.behind {
		for _, l := range []*leg{f.aboard, f.next} {
			if l != nil && which(l) {
				l.told.Broadcast()
			}
		}
	}
}

// wakeAll has all in the lane look.
func (at *lane) wakeAll() { at.wake(func(*leg) bool { return true }) }
