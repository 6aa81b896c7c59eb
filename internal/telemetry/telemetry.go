// Package telemetry counts what Tidegate does, for Prometheus.
//
// Metrics are labelled by names that an operator wrote, rules and upstreams, and by a
// few fixed words, never by keys: a client cannot create a series. Counters of
// requests are looked up when the rules are loaded, not by labels for each request;
// figures that other packages count are read at scrape time.
//
// Start with [New], hand Observe to a Gate, and serve [Handler].
package telemetry

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// Metrics has all counts. Use [New]. All methods may be called by many goroutines at once.
type Metrics struct {
	reg       prometheus.Registerer
	store     string // the word for where the counters are
	gateway   Door
	doors     []*Door // the gateway and those that were opened; set before anything is counted
	decided   [origins]atomic.Uint64
	rules     *table[ruleMetrics]
	cache     ruleCache // of rules
	combined  [combinations]atomic.Pointer[combination]
	recent    [combinations]atomic.Pointer[recent]
	showing   sync.Mutex           // held while rules change, and while they are shown
	retired   []retiredCombination // guarded by showing
	lists     *offenders.Offenders // gets all decisions, too; nil if there are none
	next      timing
	match     prometheus.Observer // of the sampled
	take      prometheus.Observer
	waited    prometheus.Observer
	upstreams *table[upstreamMetrics]
	_         cacheLinePad
	inflight  atomic.Int64
	retries   atomic.Uint64
	_         cacheLinePad
	watched   watched
}

// New returns Metrics and registers them with reg, together with those of the Go runtime and of the
// process. store is the word for where the counters are. It panics if reg has them already.
func New(reg prometheus.Registerer, store string) *Metrics {
	m := &Metrics{reg: reg, store: store}
	m.gateway = Door{Metrics: m, name: "gateway"}
	m.doors = []*Door{&m.gateway}
	decision := histogram("tidegate_decision_seconds",
		"Time to find what a request is held to (match) and to decide it (take), of one decision in 256; with Redis take of one in 64.", 1e-7, 1e-1, "step")
	waited := histogram("tidegate_queue_wait_seconds", "Time that requests waited in a queue, those included that gave up.", 1e-3, 100)
	upstream := histogram("tidegate_upstream_seconds",
		"Time to the header of the upstream's answer, by the class of its status; error: there was none; canceled: the client left first.", 1e-3, 100, "upstream", "status")
	m.match, m.take = decision.WithLabelValues("match"), decision.WithLabelValues("take")
	m.waited = waited.WithLabelValues()
	m.rules = newTable(m.newRule)
	m.upstreams = newTable(func(name string) *upstreamMetrics { return &upstreamMetrics{name: name, vector: upstream} })
	reg.MustRegister(
		decision, waited, upstream, collector{m}, buildInfo(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves the metrics of reg. If collecting one fails, the others are still served.
func Handler(reg *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Registry: reg})
}

// histogram returns a histogram with buckets of 1, 2.5 and 5 times the powers of ten from low to high.
func histogram(name, help string, low, high float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: decades(low, high)}, labels)
}
