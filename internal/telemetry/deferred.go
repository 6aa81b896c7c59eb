package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// DeferredStats are the totals of deferred requests.
type DeferredStats struct {
	Waiting    map[string]int64 // by rule
	Done, Dead int64
	Lines      int64
	Bytes, Max int64
	Oldest     time.Time // zero if none is waiting
	Unwritten  int64
	Open       bool // the store can be read and written
}

// WatchDeferred exports the totals of deferred requests.
func (m *Metrics) WatchDeferred(stats func() DeferredStats) { m.watched.deferred.Store(&stats) }

var (
	deferredWaitingDesc   = describe("tidegate_deferred_waiting", "Deferred requests that are still to be sent.", "rule")
	deferredEndedDesc     = describe("tidegate_deferred_ended", "Deferred requests that have ended and are still kept: done, or dead letters.", "state")
	deferredLinesDesc     = describe("tidegate_deferred_lines", "Keys that have deferred requests.")
	deferredBytesDesc     = describe("tidegate_deferred_bytes", "What deferred requests and their results take.")
	deferredMaxDesc       = describe("tidegate_deferred_max_bytes", "What they may take together.")
	deferredOldestDesc    = describe("tidegate_deferred_oldest_timestamp_seconds", "When the oldest deferred request was accepted that is still to be sent.")
	deferredUnwrittenDesc = describe("tidegate_deferred_unwritten", "Ends of deferred requests that are not recorded yet: these are sent again if the process dies.")
	deferredOpenDesc      = describe("tidegate_deferred_open", "Whether deferred requests can be kept; 0: their file is damaged or cannot be opened.")
)

func (s *DeferredStats) collect(emit emit) {
	for rule, n := range s.Waiting {
		emit(deferredWaitingDesc, gauge, float64(n), rule)
	}
	emit(deferredEndedDesc, gauge, float64(s.Done), "done")
	emit(deferredEndedDesc, gauge, float64(s.Dead), "dead")
	emit(deferredLinesDesc, gauge, float64(s.Lines))
	emit(deferredBytesDesc, gauge, float64(s.Bytes))
	emit(deferredMaxDesc, gauge, float64(s.Max))
	if !s.Oldest.IsZero() {
		emit(deferredOldestDesc, gauge, float64(s.Oldest.UnixMilli())/1000)
	}
	emit(deferredUnwrittenDesc, gauge, float64(s.Unwritten))
	emit(deferredOpenDesc, gauge, number(s.Open))
}

// Deferring counts what happens to requests that rules defer.
type Deferring struct {
	all   *Metrics
	kept  *prometheus.CounterVec
	tries *prometheus.HistogramVec
}

// Deferring registers its metrics; it may be called once.
func (m *Metrics) Deferring() *Deferring {
	d := &Deferring{
		all: m,
		kept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidegate_deferred_requests_total",
			Help: "Requests that a rule with defer refused: kept, or refused since there was no place (full), the body is too long (body), another limit refused (limited), they could not be stored (failed) or no more are taken (draining).",
		}, []string{"rule", "outcome"}),
		tries: histogram("tidegate_deferred_attempt_seconds", "Time of attempts to send deferred requests: done, dead (not to be tried again) or again.", 1e-3, 100, "rule", "outcome"),
	}
	m.reg.MustRegister(d.kept, d.tries)
	return d
}

// Kept counts a request that a rule with defer has refused: how is "kept", or why it was not kept.
func (d *Deferring) Kept(rule, how string) {
	d.kept.WithLabelValues(rule, how).Inc()
	if how == "kept" {
		d.all.rule(rule).add(outcome.Deferred)
	}
}

// Tried counts an attempt.
func (d *Deferring) Tried(rule, how string, took time.Duration) {
	d.tries.WithLabelValues(rule, how).Observe(took.Seconds())
}
