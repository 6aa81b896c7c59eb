package telemetry

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
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
func (m *Metrics) Store(inner chain.Backend) chain.Backend { return &timedStore{inner, m.take} }

type timedStore struct {
	chain.Backend
	took prometheus.Observer
}

// Take implements [tidegate.Store].
func (t *timedStore) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if sampled() {
		defer since(time.Now(), t.took)
	}
	return t.Backend.Take(ctx, checks, n)
}

// Taken is told how long a decision took of which others are not told; see Store.
func (m *Metrics) Taken(took time.Duration) { m.take.Observe(took.Seconds()) }

// Calls returns what is told how long each call of a shared store took. It is called once
// at most.
func (m *Metrics) Calls() func(took time.Duration) {
	call := histogram("tidegate_store_call_seconds",
		"Time that the shared store took to answer a call by requests, those included that nobody waited for any more.", 1e-5, 10)
	m.reg.MustRegister(call)
	observer := call.WithLabelValues()
	return func(took time.Duration) { observer.Observe(took.Seconds()) }
}
