package main

import "net/http"

// contestant is a server before the upstream, set up for one kind of answer.
type contestant struct {
	name   string
	status int // that every request is answered with, after the first ones
	how    func(s *site, dir, address string) command
	load   load
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
	nginxProxy:    {"nginx, proxy", http.StatusOK, (*site).nginxCommand, usual},
	caddyLimit:    {"Caddy, limit on", http.StatusOK, caddyCommand(plenty), usual},
	caddyRefuse:   {"Caddy, refusing", http.StatusTooManyRequests, caddyCommand(scarce), usual},
	gatewayLogged: {"Tidegate, limit and log on", http.StatusOK, tidegateCommand(plenty, accessLog), usual},
	gatewayLimit:  {"Tidegate, limit on", http.StatusOK, tidegateCommand(plenty, noLog), usual},
	gatewayBare:   {"Tidegate, no rules", http.StatusOK, tidegateCommand(quota{}, noLog), usual},
	gatewayRefuse: {"Tidegate, refusing", http.StatusTooManyRequests, tidegateCommand(scarce, noLog), usual},
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
