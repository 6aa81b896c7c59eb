package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var (
	requestsDesc  = describe("tidegate_requests_total", "Decisions on requests, by outcome.", "outcome")
	decisionsDesc = describe("tidegate_decisions_total", "Decisions of rules on requests: an admitted request counts for every rule "+
		"that it was held to, a refused one for the rule that refused it.", "rule", "outcome")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// emit hands out one value.
type emit func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

// collector shows what is counted without the help of package prometheus.
type collector struct{ *Metrics }

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, decisionsDesc, inflightDesc, retriesDesc, ejectedDesc, ejectionDesc,
	} {
		ch <- d
	}
	for _, d := range slices.Concat(watchedDescs, sharedDescs) {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	emit := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
		if err != nil { // a name that is no UTF-8
			m = prometheus.NewInvalidMetric(desc, err)
		}
		ch <- m
	}
	c.collectDecisions(emit)
	c.collectUpstreams(emit)
	c.watched.collect(emit)
}

func (m *Metrics) collectDecisions(emit emit) {
	for o, name := range outcomeNames {
		if outcome(o) != shadowRefused { // that is said of rules
			emit(requestsDesc, counter, float64(m.requests.n[o].Load()), name)
		}
	}
	for rule, counts := range *m.rules.all.Load() {
		for o, name := range outcomeNames {
			emit(decisionsDesc, counter, float64(counts.n[o].Load()), rule, name)
		}
	}
}
