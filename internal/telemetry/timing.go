package telemetry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
)

// sampleOneIn decisions is timed: reading the clock twice would be a good part of
// what is measured.
const sampleOneIn = 64

func sampled() bool { return rand.Uint32()%sampleOneIn == 0 }

func since(start time.Time, o prometheus.Observer) { o.Observe(time.Since(start).Seconds()) }

// Matcher is inner, timed.
func (m *Metrics) Matcher(inner tidegate.Matcher) tidegate.Matcher {
	return &timedMatcher{inner, m.match}
}

type timedMatcher struct {
	inner tidegate.Matcher
	took  prometheus.Observer
}

// Match implements [tidegate.Matcher].
func (t *timedMatcher) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	if sampled() {
		defer since(time.Now(), t.took)
	}
	return t.inner.Match(r, dst)
}

// Store is inner, timed. It belongs around the store that counts, below any in which
// requests wait.
func (m *Metrics) Store(inner tidegate.Store) tidegate.Store { return &timedStore{inner, m.take} }

type timedStore struct {
	inner tidegate.Store
	took  prometheus.Observer
}

var (
	_ tidegate.Renewer  = (*timedStore)(nil)
	_ tidegate.Reserver = (*timedStore)(nil)
	_ tidegate.Resetter = (*timedStore)(nil)
)

// Take implements [tidegate.Store].
func (t *timedStore) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if sampled() {
		defer since(time.Now(), t.took)
	}
	return t.inner.Take(ctx, checks, n)
}

// Adjust implements [tidegate.Store].
func (t *timedStore) Adjust(ctx context.Context, at int64, checks []tidegate.Check) error {
	return t.inner.Adjust(ctx, at, checks)
}

// Renew implements [tidegate.Renewer].
func (t *timedStore) Renew(ctx context.Context, at int64, checks []tidegate.Check) error {
	if r, ok := t.inner.(tidegate.Renewer); ok {
		return r.Renew(ctx, at, checks)
	}
	return tidegate.ErrUnsupported
}

// Reserve implements [tidegate.Reserver].
func (t *timedStore) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, string, error) {
	if r, ok := t.inner.(tidegate.Reserver); ok {
		return r.Reserve(ctx, checks, ttl)
	}
	return tidegate.Decision{}, "", tidegate.ErrUnsupported
}

// Settle implements [tidegate.Reserver].
func (t *timedStore) Settle(ctx context.Context, id string, actual int64) error {
	if r, ok := t.inner.(tidegate.Reserver); ok {
		return r.Settle(ctx, id, actual)
	}
	return tidegate.ErrUnsupported
}

// Reset implements [tidegate.Resetter].
func (t *timedStore) Reset(ctx context.Context, checks []tidegate.Check) error {
	if r, ok := t.inner.(tidegate.Resetter); ok {
		return r.Reset(ctx, checks)
	}
	return tidegate.ErrUnsupported
}
