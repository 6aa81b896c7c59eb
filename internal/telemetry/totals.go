package telemetry

import (
	"tidegate.dev/tidegate/internal/telemetry/outcome"
	"tidegate.dev/tidegate/internal/telemetry/series"
)

// Totals returns the counts of tidegate_decisions_total that are not 0, and those of
// tidegate_requests_total over all doors.
func (m *Metrics) Totals() (all []series.Total) {
	m.showing.Lock() // so that settle does not move counts meanwhile
	defer m.showing.Unlock()
	usual := m.combinedCounts()
	for o := range outcome.Whole {
		n := uint64(0)
		for _, d := range m.doors {
			n += d.requests.n[o].Load()
		}
		if o == outcome.OK {
			n += usual.all
		}
		if n > 0 {
			all = append(all, series.Total{Rule: series.Requests, Outcome: outcome.Outcome(o).String(), Count: n})
		}
	}
	for rule, counts := range *m.rules.all.Load() {
		for o := range outcome.Count {
			n := counts.n[o].Load()
			if o == outcome.OK {
				n += usual.rules[counts]
			}
			if n > 0 {
				all = append(all, series.Total{Rule: rule, Outcome: outcome.Outcome(o).String(), Count: n})
			}
		}
	}
	return all
}
