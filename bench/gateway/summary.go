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

const (
	leastNginx     = 0.55
	leastCaddy     = 2.2
	leastDenyCaddy = 2.5
	mostLimitCost  = 1.0 // microseconds
	leastLog       = 0.95
	leastMany      = 0.8
)

func (s summary) missed() []string {
	return rig.Missed(
		rig.Bar{Name: "nginx", Got: s.nginx, Want: leastNginx, Unit: "x"},
		rig.Bar{Name: "caddy", Got: s.caddy, Want: leastCaddy, Unit: "x"},
		rig.Bar{Name: "deny-caddy", Got: s.denyCaddy, Want: leastDenyCaddy, Unit: "x"},
		rig.Bar{Name: "limit-cost", Got: s.limitCost, Want: mostLimitCost, AtMost: true, Unit: "us"},
		rig.Bar{Name: "log", Got: s.log, Want: leastLog, Unit: "x"},
		rig.Bar{Name: "conns5000", Got: s.many, Want: leastMany, Unit: "x"})
}
