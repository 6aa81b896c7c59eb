package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var (
	requestsDesc  = describe("tidegate_requests_total", "Decisions on requests, by the listener that asked and by outcome.", "door", "outcome")
	decisionsDesc = describe("tidegate_decisions_total", "Decisions of rules on requests: an admitted request counts for every rule "+
		"that it was held to, a refused one for the rule that refused it.", "rule", "outcome")
	decidedDesc = describe("tidegate_decided_total", "Decisions on requests that are limited, by who made them: the store of the counters, "+
		"local counters in its place, a remembered refusal, events leased ahead, a share of the limit, exchanged counts, or the rule itself.", "by")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// emit reports one value.
type emit func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

// collector exports what is counted without package prometheus.
type collector struct{ *Metrics }

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requestsDesc, decisionsDesc, decidedDesc, inflightDesc, retriesDesc, ejectedDesc, ejectionDesc,
	} {
		ch <- d
	}
	for _, d := range slices.Concat(watchedDescs, trustDescs, sharedDescs, usageDescs) {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	emit := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
		if err != nil { // a name is not valid UTF-8
			m = prometheus.NewInvalidMetric(desc, err)
		}
		ch <- m
	}
	c.collectDecisions(emit)
	c.collectUpstreams(emit)
	c.watched.collect(emit)
}

func (m *Metrics) collectDecisions(emit emit) {
	m.showing.Lock() // so that no count is being moved from a combination to a door
	defer m.showing.Unlock()
	usual := m.combinedCounts()
	for i, d := range m.doors {
		for o := range outcome.Whole {
			n := d.requests.n[o].Load()
			if o == outcome.OK && i < maxDoors {
				n += usual.doors[i]
			}
			emit(requestsDesc, counter, float64(n), d.name, o.String())
		}
	}
	for o := range m.decided {
		n := m.decided[o].Load()
		if tidegate.Origin(o) == tidegate.OriginStore {
			n += usual.all
		}
		emit(decidedDesc, counter, float64(n), outcome.DecidedBy(tidegate.Origin(o), m.store))
	}
	for rule, counts := range *m.rules.all.Load() {
		for o := range outcome.Count {
			n := counts.n[o].Load()
			if o == outcome.OK {
				n += usual.rules[counts]
			}
			emit(decisionsDesc, counter, float64(n), rule, outcome.Outcome(o).String())
		}
	}
}
