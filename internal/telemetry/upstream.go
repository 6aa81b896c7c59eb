package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// upstreamMetrics counts for an upstream.
type upstreamMetrics struct {
	name      string
	vector    *prometheus.HistogramVec
	took      [len(statusClasses)]atomic.Pointer[prometheus.Observer] // nil means nothing yet
	ejections atomic.Uint64
	ejected   atomic.Bool
}

// statusClasses are the values of the label status: by its first digit, error if the upstream failed,
// canceled if the client left.
var statusClasses = [...]string{"error", "1xx", "2xx", "3xx", "4xx", "5xx", "canceled"}

func classOf(status int, err error) int {
	class := status / 100
	switch {
	case errors.Is(err, context.Canceled):
		return len(statusClasses) - 1
	case err != nil || class < 1 || class > 5:
		return 0
	}
	return class
}

// histogram returns the histogram of a class. It is looked up by its labels once.
func (u *upstreamMetrics) histogram(class int) prometheus.Observer {
	if o := u.took[class].Load(); o != nil {
		return *o
	}
	o := u.vector.WithLabelValues(u.name, statusClasses[class])
	u.took[class].Store(&o)
	return o
}

// UpstreamDone records the status of an upstream's answer and how long it took to begin, or err, why
// there was none.
func (m *Metrics) UpstreamDone(upstream string, status int, took time.Duration, err error) {
	m.upstreams.get(upstream).histogram(classOf(status, err)).Observe(took.Seconds())
}

// Inflight adds delta to the number of requests at the upstreams.
func (m *Metrics) Inflight(delta int) { m.inflight.Add(int64(delta)) }

// Retry counts a request that is sent once more.
func (m *Metrics) Retry() { m.retries.Add(1) }

// Ejected records that an upstream is ejected, or no longer is.
func (m *Metrics) Ejected(upstream string, on bool) {
	u := m.upstreams.get(upstream)
	if u.ejected.Swap(on) != on && on {
		u.ejections.Add(1)
	}
}

// Waited records how long a request waited in a queue.
func (m *Metrics) Waited(took time.Duration) { m.waited.Observe(took.Seconds()) }

var (
	inflightDesc = describe("tidegate_upstream_inflight", "Requests at the upstreams now.")
	retriesDesc  = describe("tidegate_upstream_retries_total", "Requests that were sent to an upstream once more.")
	ejectedDesc  = describe("tidegate_upstream_ejected", "Whether an upstream gets no requests because it fails.", "upstream")
	ejectionDesc = describe("tidegate_upstream_ejections_total", "How often an upstream was given no more requests because it failed.", "upstream")
)

func (m *Metrics) collectUpstreams(emit emit) {
	emit(inflightDesc, gauge, float64(m.inflight.Load()))
	emit(retriesDesc, counter, float64(m.retries.Load()))
	for name, u := range *m.upstreams.all.Load() {
		emit(ejectedDesc, gauge, number(u.ejected.Load()), name)
		emit(ejectionDesc, counter, float64(u.ejections.Load()), name)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
