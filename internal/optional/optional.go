// Package optional passes on what a store may be able to do beyond counting, for stores
// that stand around another and have nothing to add to it. Embed a [Store].
package optional

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

// Store is the inner store without its Take. What that is not able to do is answered with
// tidegate.ErrUnsupported.
type Store struct{ Inner tidegate.Store }

// Adjust implements tidegate.Store.
func (s Store) Adjust(ctx context.Context, at int64, checks []tidegate.Check) error {
	return s.Inner.Adjust(ctx, at, checks)
}

// Renew implements tidegate.Renewer.
func (s Store) Renew(ctx context.Context, at int64, checks []tidegate.Check) error {
	if r, ok := s.Inner.(tidegate.Renewer); ok {
		return r.Renew(ctx, at, checks)
	}
	return tidegate.ErrUnsupported
}

// Reserve implements tidegate.Reserver.
func (s Store) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, string, error) {
	if r, ok := s.Inner.(tidegate.Reserver); ok {
		return r.Reserve(ctx, checks, ttl)
	}
	return tidegate.Decision{}, "", tidegate.ErrUnsupported
}

// Settle implements tidegate.Reserver.
func (s Store) Settle(ctx context.Context, id string, actual int64) error {
	if r, ok := s.Inner.(tidegate.Reserver); ok {
		return r.Settle(ctx, id, actual)
	}
	return tidegate.ErrUnsupported
}

// Reset implements tidegate.Resetter.
func (s Store) Reset(ctx context.Context, checks []tidegate.Check) error {
	if r, ok := s.Inner.(tidegate.Resetter); ok {
		return r.Reset(ctx, checks)
	}
	return tidegate.ErrUnsupported
}
