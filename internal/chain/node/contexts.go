package node

import (
	"context"
	"sync"
	"time"
)

// lateFor is how long after the deadline a call still waits for its reply, which shows what of
// the local decisions has to go to the backlog.
const lateFor = time.Second

// contexts are shared by calls that begin about together, since a timer for each of them
// costs more than the rest of the call.
type contexts struct{ deadline, post, late sharedContext }

type sharedContext struct {
	mu    sync.Mutex
	ctx   context.Context
	until time.Duration // calls after this get another
}

// get returns a context that ends after d, or up to an eighth of the deadline before.
func (s *sharedContext) get(n *Node, d time.Duration) context.Context {
	now := n.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || now >= s.until {
		// It ends by itself; nobody can tell when the last call has ended.
		ctx, cancel := context.WithDeadline(context.Background(), n.start.Add(now+d))
		context.AfterFunc(ctx, cancel)
		s.ctx, s.until = ctx, now+n.o.Deadline/8
	}
	return s.ctx
}

// within is a context that ends with one context and has the values of both.
type within struct {
	context.Context
	values context.Context
}

// Value looks in the first context first: with its internal values package context can follow
// that context without a goroutine.
func (w within) Value(key any) any {
	if v := w.Context.Value(key); v != nil {
		return v
	}
	return w.values.Value(key)
}
