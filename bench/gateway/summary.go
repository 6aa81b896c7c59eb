package main

import (
	"fmt"

	"tidegate.dev/tidegate/bench/internal/report"
	"tidegate.dev/tidegate/bench/internal/rig"
)

// summary is the last line: what is promised of the gateway.
type summary struct {
	nginx, caddy, denyCaddy float64 // share of their requests/s
	limitCost               float64 // microseconds
	log                     float64 // share of our own requests/s without the access log
	many                    float64 // share of nginx's requests/s over 5,000 connections
}

func summarize(es entrants, c cost) summary {
	return summary{
		nginx:     es.against(gatewayLimit, nginxProxy),
		caddy:     es.against(gatewayLimit, caddyLimit),
		denyCaddy: es.against(gatewayRefuse, caddyRefuse),
		limitCost: c.added() / 1000,
		log:       es.against(gatewayLogged, gatewayLimit),
		many:      es.againstNginx(manyConnections),
	}
}

// againstNginx is that of the pair that has one of the other loads.
func (es entrants) againstNginx(other int) float64 {
	nginx := len(contestants) + 2*other
	return es.against(nginx+1, nginx)
}

// against returns the requests/s of one by those of another, of the median round.
func (es entrants) against(one, other int) float64 {
	var ratios []float64
	for i, rate := range es[one].rates {
		ratios = append(ratios, rate/es[other].rates[i])
	}
	return report.Median(ratios)
}

func (s summary) String() string {
	return fmt.Sprintf("bench-gateway: nginx %.2fx caddy %.2fx deny-caddy %.1fx limit-cost %.1fus log %.2fx conns5000 %.2fx",
		s.nginx, s.caddy, s.denyCaddy, s.limitCost, s.log, s.many)
}

// bars are the budget of the gateway.
func (s summary) bars() []rig.Bar {
	return []rig.Bar{
		{Name: "nginx", Got: s.nginx, Want: 0.33, Unit: "x"},
		{Name: "caddy", Got: s.caddy, Want: 1.2, Unit: "x"},
		{Name: "deny-caddy", Got: s.denyCaddy, Want: 1.6, Unit: "x"},
		{Name: "limit-cost", Got: s.limitCost, Want: 1, AtMost: true, Unit: "us"},
		{Name: "log", Got: s.log, Want: 0.9, Unit: "x"},
	}
}

// aims are what the budget is to become. The server of net/http leaves them out of reach: see
// docs/benchmarks.md.
func (s summary) aims() []rig.Bar {
	return []rig.Bar{
		{Name: "nginx", Got: s.nginx, Want: 0.55, Unit: "x"},
		{Name: "caddy", Got: s.caddy, Want: 2.2, Unit: "x"},
		{Name: "deny-caddy", Got: s.denyCaddy, Want: 2.5, Unit: "x"},
		{Name: "log", Got: s.log, Want: 0.95, Unit: "x"},
		{Name: "conns5000", Got: s.many, Want: 0.8, Unit: "x"},
	}
}

func (s summary) missed() []string { return rig.Missed(s.bars()...) }
