package envoy

import "sync"

// MaxMetrics bounds the names that [Rule.Metric] makes of values in requests, per domain.
const MaxMetrics = 1000

// maxMetricName bounds each of them, in bytes.
const maxMetricName = 512

// metricNames are those made so far.
type metricNames struct {
	mu   sync.RWMutex
	made map[string]string
}

// Metric returns the metric key of envoyproxy/ratelimit for a descriptor that is held to r.
// It has values of the request if the file says detailed_metric or value_to_metric. Names
// above 512 bytes, and after [MaxMetrics] of a domain all others, become Path. Metric does not
// allocate for names that it made before.
func (r *Rule) Metric(entries []Entry) string {
	if !r.metric {
		return r.Path
	}
	var room [256]byte
	name := r.appendMetric(room[:0], entries)
	if len(name) > maxMetricName {
		return r.Path
	}
	m := &r.domain.metrics
	m.mu.RLock()
	made, ok := m.made[string(name)]
	full := len(m.made) >= MaxMetrics
	m.mu.RUnlock()
	switch {
	case ok:
		return made
	case full:
		return r.Path
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.made) >= MaxMetrics {
		return r.Path
	}
	if m.made == nil {
		m.made = make(map[string]string)
	}
	made = string(name)
	m.made[made] = made
	return made
}

func (r *Rule) appendMetric(b []byte, entries []Entry) []byte {
	b = append(b, r.domain.name...)
	for i := range entries {
		if len(b) > maxMetricName { // the name will not be used
			break
		}
		e := &entries[i]
		b = append(append(b, '.'), e.Key...)
		if value := r.metricValue(i, e.Value); value != "" {
			b = append(append(b, '_'), value...)
		}
	}
	return b
}

// metricValue returns what stands for the value of entry i.
func (r *Rule) metricValue(i int, value string) string {
	switch {
	case r.Override:
		return value
	case r.steps[i].shared:
		return r.steps[i].value
	case r.detail || r.steps[i].metric:
		return value
	}
	return r.steps[i].value
}
