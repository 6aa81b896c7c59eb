package deferq

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Layer is a layer in front of the counters. While requests of a key are kept, it refuses live
// requests of that key without counting them: they would overtake the kept ones and take their
// room. If it is unknown whether any are kept, on_store_failure of the rule decides: only deny
// preserves the order then.
type Layer struct {
	chain.Backend
	// Busy reports whether requests of the line are kept.
	Busy func(ctx context.Context, l Line) (bool, error)
}

// Take implements tidegate.Store.
func (s *Layer) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	for i := range checks {
		c := &checks[i]
		if !defers(c) || c.Limit.Terms.Handling.Defer.Stream != "" {
			continue
		}
		busy, err := s.Busy(ctx, LineOf(c))
		if err != nil && c.Limit.Terms.Handling.OnStoreFailure == tidegate.FailClosed {
			return tidegate.Decision{Err: err, Limit: c.Limit, RetryAfter: time.Second, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}, nil
		}
		if busy {
			return tidegate.Decision{Limit: c.Limit, RetryAfter: time.Second, Receipt: tidegate.Receipt{Origin: tidegate.OriginRule}}, nil
		}
	}
	return s.Backend.Take(ctx, checks, n)
}

// MaxBatch implements chain.Backend.
func (s *Layer) MaxBatch() int { return 1 }

// TakeBatch implements chain.Backend.
func (s *Layer) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	return chain.TakeEach(ctx, s, asks)
}
