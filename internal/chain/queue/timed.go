package queue

import (
	"context"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
)

// Time makes s measure decisions of the store below, without the time in a queue: whenever next is
// set, s clears it and calls took with the duration of its next decision. Call Time before Take. It
// returns s.
func (s *Store) Time(next *atomic.Bool, took func(time.Duration)) *Store {
	s.next, s.took = next, took
	return s
}

// due reports whether this decision is timed.
func (s *Store) due() bool { return s.next != nil && s.next.Load() && s.next.Swap(false) }

// timed is the store below with measurements, for requests that may wait in a queue. Other requests do
// not use it, because each layer costs a copy of every decision.
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
