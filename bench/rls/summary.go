package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of the service.
type summary struct {
	rls, rls20 float64 // calls/s in memory with 1 and 20 descriptors, times a server that decides nothing
	envoy      float64 // calls/s on Redis, times envoyproxy/ratelimit
	envoyCPU   float64 // the same of CPU time per call
}

// The races, and the bars of each.
const (
	memory   = "memory"
	memory20 = "memory20"
	onRedis  = "redis"

	leastRLS   = 0.90
	leastRLS20 = 0.75
	leastEnvoy = 2
	mostCPU    = 0.5
)

func (es entrants) summary() (s summary) {
	for _, e := range es {
		if e.rival == nil {
			continue
		}
		switch e.race {
		case memory:
			s.rls = e.against()
		case memory20:
			s.rls20 = e.against()
		case onRedis:
			s.envoy, s.envoyCPU = e.against(), e.cost()
		}
	}
	return s
}

func (s summary) String() string {
	return fmt.Sprintf("bench-rls: rls %.2fx rls20 %.2fx envoy %.1fx envoy-cpu %.1fx", s.rls, s.rls20, s.envoy, s.envoyCPU)
}

func (s summary) missed() []string {
	return rig.Missed(
		rig.Bar{Name: "rls", Got: s.rls, Want: leastRLS, Unit: "x"},
		rig.Bar{Name: "rls20", Got: s.rls20, Want: leastRLS20, Unit: "x"},
		rig.Bar{Name: "envoy", Got: s.envoy, Want: leastEnvoy, Unit: "x"},
		rig.Bar{Name: "envoy-cpu", Got: s.envoyCPU, Want: mostCPU, AtMost: true, Unit: "x"})
}

func (es entrants) table(heat time.Duration) report.Table {
	t := report.Table{
		Title: "The rate limit service for Envoy",
		Note: fmt.Sprintf("%d calls in flight over %d connections, %d values drawn at random, medians of %d rounds of %s; load generator, server and Redis share the cores. "+
			"The CPU time is that of the server alone.", inFlight, connections, keys, len(es[0].rates), heat),
		Head: []string{"", "calls/s", "against its rival", "CPU µs/call", "against its rival", "p50 ms", "p99 ms", "wrong answers"},
	}
	for _, e := range es {
		rate, cost := "", ""
		if e.rival != nil {
			rate, cost = fmt.Sprintf("%.2fx", e.against()), fmt.Sprintf("%.2fx", e.cost())
		}
		t.Add(e.name, report.Thousands(int64(report.Median(e.rates))), rate, fmt.Sprintf("%.1f", report.Median(e.micros)), cost,
			fmt.Sprintf("%.2f", report.Median(e.p50)), fmt.Sprintf("%.2f", report.Median(e.p99)), report.Thousands(e.bad))
	}
	return t
}
