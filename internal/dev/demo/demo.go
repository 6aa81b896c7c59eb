// Package demo is a small API behind the gateway for people who try it, with rules
// and commands to try. It is not meant for production.
//
// Start with [Start].
package demo

import (
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Rules are the example rules. deploy/example/rules.yaml is a copy of them, as a test checks.
//
//go:embed rules.yaml
var Rules []byte

// Upstream is the demo API while it is served at URL.
type Upstream struct {
	URL    *url.URL
	server *http.Server
}

// Start serves the demo on this machine alone, on a port that is free.
func Start() (*Upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the demo upstream: %w", err)
	}
	u := &Upstream{
		URL:    &url.URL{Scheme: "http", Host: l.Addr().String()},
		server: &http.Server{Handler: NewHandler(), ReadHeaderTimeout: 5 * time.Second},
	}
	go func() { _ = u.server.Serve(l) }() // until Close
	return u, nil
}

// Close stops serving.
func (u *Upstream) Close() { _ = u.server.Close() }
