package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/telemetry/draw"
)

// sampleOneIn decisions is timed: reading the clock twice and finding the bucket takes a microsecond,
// as long as a decision.
const sampleOneIn = 256

func sampled() bool { return draw.Uint32()%sampleOneIn == 0 }

func since(start time.Time, o prometheus.Observer) { o.Observe(time.Since(start).Seconds()) }

// Matcher is inner, timed.
func (m *Metrics) Matcher(inner tidegate.Matcher) tidegate.Matcher {
	return &timedMatcher{inner: inner, took: m.match}
}

type timedMatcher struct {
	_     apart
	inner tidegate.Matcher
	took  prometheus.Observer
	_     apart
}

// Match implements [tidegate.Matcher].
func (t *timedMatcher) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	if sampled() {
		return t.timed(r, dst)
	}
	return t.inner.Match(r, dst)
}

// timed is Match, timed; apart, as a function that may defer takes longer whether it does or not.
func (t *timedMatcher) timed(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	defer since(time.Now(), t.took)
	return t.inner.Match(r, dst)
}

// Store is inner, timed. It belongs around the store that counts, below any in which
// requests wait.
func (m *Metrics) Store(inner chain.Backend) chain.Backend {
	return &timedStore{Backend: inner, took: m.take}
}

type timedStore struct {
	_ apart
	chain.Backend
	took prometheus.Observer
	_    apart
}

// Take implements [tidegate.Store].
func (t *timedStore) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if sampled() {
		return t.timed(ctx, checks, n)
	}
	return t.Backend.Take(ctx, checks, n)
}

func (t *timedStore) timed(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	defer since(time.Now(), t.took)
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
