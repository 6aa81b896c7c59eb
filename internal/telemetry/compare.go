package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Compared counts how often another rate limit service gives the same answer.
type Compared struct {
	rules *table[compared]
	stats func() (skipped, failed uint64)
}

type compared struct{ agree, differ atomic.Uint64 }

// NewCompared returns a Compared; it may be called once. stats returns how many calls were not
// compared: skipped because too many waited, and failed because the other service did not answer.
func (m *Metrics) NewCompared(stats func() (skipped, failed uint64)) *Compared {
	c := &Compared{rules: newTable(func(string) *compared { return new(compared) }), stats: stats}
	m.reg.MustRegister(comparedCollector{c})
	return c
}

// Told counts a descriptor.
func (c *Compared) Told(domain, rule string, agree bool) {
	if rule == "" {
		rule = domain
	}
	if at := c.rules.get(rule); agree {
		at.agree.Add(1)
	} else {
		at.differ.Add(1)
	}
}

var (
	comparedDesc   = describe("tidegate_rls_compared_total", "Descriptors that rls.compare asked the other rate limit service about, by rule (the domain, where there is none) and whether both answered the same.", "rule", "answer")
	uncomparedDesc = describe("tidegate_rls_uncompared_total", "Calls that rls.compare has no answer of the other rate limit service for: too many waited (skipped), or it gave none (failed).", "why")
)

type comparedCollector struct{ *Compared }

// Describe implements [prometheus.Collector].
func (c comparedCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- comparedDesc
	ch <- uncomparedDesc
}

// Collect implements [prometheus.Collector].
func (c comparedCollector) Collect(ch chan<- prometheus.Metric) {
	emit := func(d *prometheus.Desc, n uint64, labels ...string) {
		m, err := prometheus.NewConstMetric(d, counter, float64(n), labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		ch <- m
	}
	for rule, at := range *c.rules.all.Load() {
		emit(comparedDesc, at.agree.Load(), rule, "same")
		emit(comparedDesc, at.differ.Load(), rule, "different")
	}
	skipped, failed := c.stats()
	emit(uncomparedDesc, skipped, "skipped")
	emit(uncomparedDesc, failed, "failed")
}
