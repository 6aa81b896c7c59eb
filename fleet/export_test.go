package fleet

import (
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/queue"
)

// Unqueued is the stack without the line.
func (s *Store) Unqueued() tidegate.Store { return s.node }

// TurnsBy has turns come by another clock: the suite books them days ahead.
func (s *Store) TurnsBy(c queue.Clock) { s.queue = queue.NewBy(s.queue.Backend, c) }

// Skewed returns options of an instance whose wall clock is ahead.
func (o Options) Skewed(by time.Duration) Options {
	o.skew = by
	return o
}
