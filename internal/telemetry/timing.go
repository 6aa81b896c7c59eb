package telemetry

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
)

// sampleOneIn means that one decision in so many is timed: reading the clock twice and finding the
// bucket takes a microsecond, as long as a decision.
const sampleOneIn = 256

// timing says which steps are timed the next time they are taken; that clears the flag. Both flags are
// set at random at the end of a decision, so that the steps themselves need no random number.
type timing struct {
	_           cacheLinePad
	match, take atomic.Bool
	_           cacheLinePad
}

// ended decides by the random number of a decision that has ended whether the next one is timed.
func (t *timing) ended(random uint32) {
	if random < 1<<32/sampleOneIn {
		t.match.Store(true)
		t.take.Store(true)
	}
}

func since(start time.Time, o prometheus.Observer) { o.Observe(time.Since(start).Seconds()) }

// Matcher returns inner, with a sample of its calls timed.
func (m *Metrics) Matcher(inner tidegate.Matcher) tidegate.Matcher {
	return &timedMatcher{inner: inner, next: &m.next.match, took: m.match}
}

type timedMatcher struct {
	_     cacheLinePad
	inner tidegate.Matcher
	next  *atomic.Bool
	took  prometheus.Observer
	_     cacheLinePad
}

// Match implements [tidegate.Matcher].
func (t *timedMatcher) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	if t.next.Load() && t.next.Swap(false) {
		return t.timed(r, dst)
	}
	return t.inner.Match(r, dst)
}

// timed times a call of inner. It is a function of its own because a function with a defer takes
// longer, whether it reaches the defer or not.
func (t *timedMatcher) timed(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	defer since(time.Now(), t.took)
	return t.inner.Match(r, dst)
}

// Takes returns what a layer before the store needs to time decisions: if next is set, the layer
// clears it, times the next decision, and calls took.
func (m *Metrics) Takes() (next *atomic.Bool, took func(time.Duration)) { return &m.next.take, m.Taken }

// Taken records how long a sampled decision took.
func (m *Metrics) Taken(took time.Duration) { m.take.Observe(took.Seconds()) }

// Calls registers the histogram of calls to a shared store, and returns the function that records how
// long one took. Call it once at most.
func (m *Metrics) Calls() func(took time.Duration) {
	call := histogram("tidegate_store_call_seconds",
		"Time that the shared store took to answer a call by requests, those included that nobody waited for any more.", 1e-5, 10)
	m.reg.MustRegister(call)
	observer := call.WithLabelValues()
	return func(took time.Duration) { observer.Observe(took.Seconds()) }
}
