package telemetry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/optional"
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
func (m *Metrics) Store(inner tidegate.Store) tidegate.Store {
	return &timedStore{optional.Store{Inner: inner}, m.take}
}

type timedStore struct {
	optional.Store
	took prometheus.Observer
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
	return t.Inner.Take(ctx, checks, n)
}
