package cluster

import (
	"context"
	"time"
)

// round is calls that begin about together. They share one context, since a timer for
// each of them costs more than the rest of the call.
type round struct {
	ctx   context.Context
	until time.Duration // calls after this belong to the next
}

// now is the time since the Store was made, by the monotonic clock.
func (s *Store) now() time.Duration { return time.Since(s.start) }

// deadline is the context of a call that begins now.
func (s *Store) deadline() context.Context {
	now := s.now()
	for {
		old := s.round.Load()
		if old != nil && now < old.until {
			return old.ctx
		}
		// It ends by itself; nobody can tell when the last call has ended.
		ctx, cancel := context.WithDeadline(context.Background(), s.start.Add(now+s.o.Deadline))
		if s.round.CompareAndSwap(old, &round{ctx, now + s.o.Deadline/8}) {
			context.AfterFunc(ctx, cancel)
			return ctx
		}
		cancel()
	}
}
