package main

import "net/http"

// loadPath is what every request asks for.
const loadPath = "/users/42"

// contestant is a server before the upstream, set up for one kind of answer.
type contestant struct {
	name   string
	status int // that every request is answered with, after the first ones
	how    func(s *site, dir, address string) command
}

// Their places in the race.
const (
	nginxProxy = iota
	caddyLimit
	caddyRefuse
	gatewayLogged // beside the one it is compared with
	gatewayLimit
	gatewayBare // the same
	gatewayRefuse
)

var contestants = []contestant{
	nginxProxy:    {"nginx, proxy", http.StatusOK, (*site).nginxCommand},
	caddyLimit:    {"Caddy, limit on", http.StatusOK, caddyCommand(plenty)},
	caddyRefuse:   {"Caddy, refusing", http.StatusTooManyRequests, caddyCommand(scarce)},
	gatewayLogged: {"Tidegate, limit and log on", http.StatusOK, tidegateCommand(plenty, accessLog)},
	gatewayLimit:  {"Tidegate, limit on", http.StatusOK, tidegateCommand(plenty, noLog)},
	gatewayBare:   {"Tidegate, no rules", http.StatusOK, tidegateCommand(quota{}, noLog)},
	gatewayRefuse: {"Tidegate, refusing", http.StatusTooManyRequests, tidegateCommand(scarce, noLog)},
}

// quota is so many requests a client and unit of time; none when it is zero.
type quota struct {
	events       int
	unit, window string // the same, as Tidegate and as Caddy write it
}

var (
	plenty = quota{1_000_000, "second", "1s"} // above what the machine can serve: all are counted and pass
	scarce = quota{1, "day", "24h"}           // used up before the race
)
