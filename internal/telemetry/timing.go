package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
)

// sampleOneIn decisions is timed: reading the clock twice and finding the bucket takes a microsecond,
// as long as a decision.
const sampleOneIn = 256

// timing says which steps are timed when they are next taken; whoever takes one clears it. A decision
// that has ended sets both, at random: so the steps themselves need no random number.
type timing struct {
	_           apart
	match, take atomic.Bool
	_           apart
}

// ended may have the next decision timed, by a random number of this one.
func (t *timing) ended(random uint32) {
	if random < 1<<32/sampleOneIn {
		t.match.Store(true)
		t.take.Store(true)
	}
}

func since(start time.Time, o prometheus.Observer) { o.Observe(time.Since(start).Seconds()) }

// Matcher is inner, timed.
func (m *Metrics) Matcher(inner tidegate.Matcher) tidegate.Matcher {
	return &timedMatcher{inner: inner, next: &m.next.match, took: m.match}
}

type timedMatcher struct {
	_     apart
	inner tidegate.Matcher
	next  *atomic.Bool
	took  prometheus.Observer
	_     apart
}

// Match implements [tidegate.Matcher].
func (t *timedMatcher) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	if t.next.Load() && t.next.Swap(false) {
		return t.timed(r, dst)
	}
	return t.inner.Match(r, dst)
}

// timed is Match, timed; apart, as a function that may defer takes longer whether it does or not.
func (t *timedMatcher) timed(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	defer since(time.Now(), t.took)
	return t.inner.Match(r, dst)
}

// Takes returns what a layer before the store needs to time decisions: next is set if the next one
// is to be timed, which then clears it and tells took.
func (m *Metrics) Takes() (next *atomic.Bool, took func(time.Duration)) { return &m.next.take, m.Taken }

// Taken is told how long a decision took that is one of the sampled.
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
