package guard

import (
	"context"
	"sync/atomic"
	"time"
)

// round is calls that begin about together. They share one context, since a timer
// for each of them costs more than the rest of the call.
type round struct {
	ctx   context.Context
	end   context.CancelFunc
	from  time.Duration
	until time.Duration // calls after this belong to the next
	over  atomic.Bool   // it is later than that, as far as a timer could tell
}

// current is a round for a call that begins now. It does not read the clock, which takes
// as long as a good part of a call that is shared with others: where timers are late, a
// call is given so much less time, but never none.
func (g *Guard) current() *round {
	if r := g.round.Load(); r != nil && !r.over.Load() && r.ctx.Err() == nil {
		return r
	}
	return g.roundAt(g.now())
}

// roundAt is the round of a call that begins now.
func (g *Guard) roundAt(now time.Duration) *round {
	for {
		old := g.round.Load()
		if old != nil && now < old.until {
			return old
		}
		r := &round{from: now, until: now + g.o.Deadline/8}
		r.ctx, r.end = context.WithDeadline(context.Background(), g.wall(now+g.o.Deadline))
		if g.round.CompareAndSwap(old, r) {
			time.AfterFunc(g.o.Deadline/8, func() { r.over.Store(true) })
			return r
		}
		r.end()
	}
}

// within is a context that ends with the round and has the values of the caller's.
func (r *round) within(ctx context.Context) context.Context {
	if ctx == context.Background() {
		return r.ctx
	}
	return within{r.ctx, ctx}
}

type within struct {
	context.Context
	values context.Context
}

func (w within) Value(key any) any {
	// The round first: package context asks it for its own, to follow it without a goroutine.
	if v := w.Context.Value(key); v != nil {
		return v
	}
	return w.values.Value(key)
}
