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
	for i, e := range es[:len(contestants)] {
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

// loadsTable returns the other loads.
func loadsTable(es entrants) report.Table {
	t := report.Table{
		Title: "Other loads",
		Note:  fmt.Sprintf("nginx as a plain proxy, and Tidegate with a limit, in the same rounds. HTTP/2 is asked by h2load, %d requests at once on each connection, which tells no percentiles.", h2Streams),
		Head:  []string{"", "nginx requests/s", "Tidegate requests/s", "against nginx", "nginx CPU µs", "Tidegate CPU µs", "nginx p99 ms", "Tidegate p99 ms", "wrong answers"},
	}
	for i, l := range otherLoads {
		nginx, gateway := es[len(contestants)+2*i], es[len(contestants)+2*i+1]
		p99 := func(e *entrant) string {
			if l.http2 {
				return ""
			}
			return fmt.Sprintf("%.1f", report.Median(e.p99))
		}
		t.Add(l.name, report.Thousands(int64(report.Median(nginx.rates))), report.Thousands(int64(report.Median(gateway.rates))), ratio(es.againstNginx(i)),
			fmt.Sprintf("%.1f", report.Median(nginx.micros)), fmt.Sprintf("%.1f", report.Median(gateway.micros)), p99(nginx), p99(gateway), report.Thousands(nginx.wrong+gateway.wrong))
	}
	return t
}

func ratio(r float64) string { return fmt.Sprintf("%.2fx", r) }
