package main

import (
	"fmt"
	"io"

	"tidegate.dev/tidegate/bench/internal/report"
)

// summary is the last line: what is promised of the gateway.
type summary struct {
	nginx, caddy, denyCaddy float64 // share of their requests/s
	limitCost               float64 // microseconds
}

func summarize(es entrants, c cost) summary {
	return summary{
		nginx:     es.against(gatewayLimit, nginxProxy),
		caddy:     es.against(gatewayLimit, caddyLimit),
		denyCaddy: es.against(gatewayRefuse, caddyRefuse),
		limitCost: c.added() / 1000,
	}
}

// against is the requests/s of one by those of another, of the median round.
func (es entrants) against(one, other int) float64 {
	var ratios []float64
	for i, rate := range es[one].rates {
		ratios = append(ratios, rate/es[other].rates[i])
	}
	return report.Median(ratios)
}

func (s summary) String() string {
	return fmt.Sprintf("bench-gateway: nginx %.2fx caddy %.2fx deny-caddy %.1fx limit-cost %.1fus", s.nginx, s.caddy, s.denyCaddy, s.limitCost)
}

// conclude prints the last line and, if it is to be checked, what is missed.
func (s summary) conclude(out io.Writer, check bool) error {
	missed := s.missed()
	if check {
		for _, m := range missed {
			fmt.Fprintln(out, "missed:", m)
		}
	}
	fmt.Fprintln(out, s)
	if check && len(missed) > 0 {
		return errMissed
	}
	return nil
}

const (
	leastNginx     = 0.33
	leastCaddy     = 1.2
	leastDenyCaddy = 1.6
	mostLimitCost  = 1.0 // microseconds
)

func (s summary) missed() []string {
	var missed []string
	for _, bar := range []struct {
		name       string
		got, least float64
	}{{"nginx", s.nginx, leastNginx}, {"caddy", s.caddy, leastCaddy}, {"deny-caddy", s.denyCaddy, leastDenyCaddy}} {
		if bar.got < bar.least {
			missed = append(missed, fmt.Sprintf("%s is %.3gx, the bar is at least %.3gx", bar.name, bar.got, bar.least))
		}
	}
	if s.limitCost > mostLimitCost {
		missed = append(missed, fmt.Sprintf("limit-cost is %.3gus, the bar is at most %.3gus", s.limitCost, mostLimitCost))
	}
	return missed
}
