package cluster

import (
	"context"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// patience is how long a caller waits. Those who wait do so for one thing, to be woken:
// to wait for one of two channels costs twice as much, which is a large part of what a
// request for a busy key costs at all. When a context ends, all are woken who may wait
// under it, and look for themselves.
type patience struct {
	ctx  context.Context
	done <-chan struct{} // of ctx
	own  context.Context // of the Store, for callers without a deadline; nil otherwise
}

// watch is of a context that several callers wait under: one function is called at its
// end, not one for each of them. Under internal/guard, all who come within some
// milliseconds have contexts that end together.
type watch struct {
	done <-chan struct{}
	soon bool        // it ends
	set  atomic.Bool // there is one
}

// watched reports whether those who wait under a context are woken when that ends.
func (s *Store) watched(done <-chan struct{}) bool {
	w := s.ends.Load()
	return w != nil && w.done == done && w.set.Load()
}

// joinAlone is join for a caller that sees itself to being woken.
func (s *Store) joinAlone(ctx context.Context, checks []tidegate.Check, n int, w ways) (*tidegate.Decision, error) {
	e := patience{ctx: ctx, done: ctx.Done()}
	if e.done != nil {
		if stop := s.watch(ctx, e.done, &s.ends); stop != nil {
			defer stop()
		}
	}
	if _, ok := ctx.Deadline(); !ok {
		e.own = s.deadline()
		if stop := s.watch(e.own, e.own.Done(), &s.lates); stop != nil {
			defer stop()
		}
	}
	return s.join(&e, checks, n, w)
}

// watch has those who wait woken at the end of ctx, and returns what undoes that; nil: it
// need not be undone. last is the latest of the watches.
func (s *Store) watch(ctx context.Context, done <-chan struct{}, last *atomic.Pointer[watch]) (stop func() bool) {
	w := last.Load()
	if w == nil || w.done != done { // perhaps the first of several
		until, ok := ctx.Deadline()
		w = &watch{done: done, soon: ok && time.Until(until) < 2*s.o.Deadline}
		last.Store(w)
		return context.AfterFunc(ctx, func() { s.wake(done) })
	}
	if !w.soon { // what is set up for it would stay
		return context.AfterFunc(ctx, func() { s.wake(done) })
	}
	if w.set.CompareAndSwap(false, true) {
		context.AfterFunc(ctx, func() { s.wake(done) })
	}
	return nil
}

// reached is why the caller no longer waits; nil: it does.
func (s *Store) reached(e *patience) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if e.own != nil && e.own.Err() != nil {
		return s.late
	}
	return nil
}

// wake has all who may wait under a context look whether they still do.
func (s *Store) wake(done <-chan struct{}) {
	for i := range s.lanes {
		s.lanes[i].wake(done)
	}
}

func (at *lane) wake(done <-chan struct{}) {
	at.mu.Lock()
	defer at.mu.Unlock()
	for f := at.first; f != nil; f = f.behind {
		for _, l := range []*leg{f.aboard, f.next} {
			if l != nil && (l.mixed || l.ends == done) {
				l.wakeAll()
			}
		}
	}
}
