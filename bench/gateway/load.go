package main

import (
	"context"
	"net/http"
	"time"

	"tidegate.dev/tidegate/bench/internal/wrk"
)

// load is how a contestant is asked.
type load struct {
	name        string
	connections int
	path        string
	perRequest  bool // a connection for every request
	tls         bool
	http2       bool
}

const (
	loadPath = "/users/42"
	bigPath  = "/big" // has an answer of bigSize bytes
	bigSize  = 100 << 10
)

// usual is the load of the race.
var usual = load{name: "64 connections", connections: wrk.Connections, path: loadPath}

// otherLoads are put on nginx and on Tidegate with a limit.
var otherLoads = []load{
	{name: "2,000 connections", connections: 2000, path: loadPath},
	{name: "5,000 connections", connections: 5000, path: loadPath},
	{name: "a connection for every request", connections: wrk.Connections, path: loadPath, perRequest: true},
	{name: "answers of 100 KB", connections: wrk.Connections, path: bigPath},
	{name: "TLS", connections: wrk.Connections, path: loadPath, tls: true},
	{name: "HTTP/2", connections: wrk.Connections, path: loadPath, tls: true, http2: true},
}

// manyConnections is the place of that load among the others.
const manyConnections = 1

// others returns the contestants of the other loads, in pairs: nginx, then Tidegate.
func others() (cs []contestant) {
	for _, l := range otherLoads {
		nginx, gateway := (*site).nginxCommand, tidegateCommand(plenty, noLog)
		switch {
		case l.tls:
			nginx, gateway = (*site).nginxTLSCommand, tidegateTLSCommand
		case l.connections > wrk.Connections:
			gateway = tidegateManyCommand
		}
		cs = append(cs, contestant{"nginx, " + l.name, http.StatusOK, nginx, l}, contestant{"Tidegate, " + l.name, http.StatusOK, gateway, l})
	}
	return cs
}

// url returns what is asked for at an address.
func (l load) url(address string) string {
	if l.tls {
		return "https://" + address + l.path
	}
	return "http://" + address + l.path
}

// run puts the load on a server for about d.
func (l load) run(ctx context.Context, s *site, address string, d time.Duration) (wrk.Tally, error) {
	if l.http2 {
		return s.h2load.run(ctx, l.connections, l.url(address), d)
	}
	w := s.wrk.Over(l.connections)
	if l.perRequest {
		w = w.Sending("Connection: close")
	}
	return w.Run(ctx, l.url(address), d)
}

// underWay returns how many requests can be on their way when the time is up.
func (l load) underWay() int64 {
	if l.http2 {
		return int64(l.connections * h2Streams)
	}
	return int64(l.connections)
}
