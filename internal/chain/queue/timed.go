package queue

import (
	"context"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// Time has took told how long the store below takes to decide, without the time in a queue: of the
// next decision whenever next is set, which is cleared then. It is called before Take, and returns s.
func (s *Store) Time(next *atomic.Bool, took func(time.Duration)) *Store {
	s.next, s.took = next, took
	return s
}

// due reports whether this decision is timed.
func (s *Store) due() bool { return s.next != nil && s.next.Load() && s.next.Swap(false) }

// timed is the store below, for requests that may wait in a queue. Others do without it: each layer
// copies every decision.
type timed struct{ *Store }

// Take implements tidegate.Store.
func (t timed) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if !t.due() {
		return t.Backend.Take(ctx, checks, n)
	}
	start := time.Now()
	d, err := t.Backend.Take(ctx, checks, n)
	t.took(time.Since(start))
	return d, err
}
