package main

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/wrk"
)

func raceTable(es entrants, heat time.Duration) report.Table {
	t := report.Table{
		Title: "A reverse proxy before one fast upstream",
		Note: fmt.Sprintf("wrk with %d kept connections and %d threads, medians of %d rounds of %s; load generator, proxy and upstream share the cores. "+
			"The CPU time is the proxy's own.", wrk.Connections, wrk.Threads, len(es[nginxProxy].rates), heat),
		Head: []string{"", "answers", "requests/s", "against nginx", "against Caddy", "CPU µs/request", "p99 ms", "wrong answers"},
	}
	for i, e := range es {
		nginx, caddy := "", ""
		switch i {
		case nginxProxy, caddyLimit, gatewayLogged, gatewayLimit, gatewayBare:
			nginx, caddy = ratio(es.against(i, nginxProxy)), ratio(es.against(i, caddyLimit))
		case caddyRefuse, gatewayRefuse:
			caddy = ratio(es.against(i, caddyRefuse))
		}
		t.Add(e.name, fmt.Sprint(e.status), report.Thousands(int64(report.Median(e.rates))), nginx, caddy,
			fmt.Sprintf("%.1f", report.Median(e.micros)), fmt.Sprintf("%.1f", report.Median(e.p99)), report.Thousands(e.wrong))
	}
	return t
}

func ratio(r float64) string { return fmt.Sprintf("%.2fx", r) }
