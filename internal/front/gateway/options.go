package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/strict"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// Options configure a gateway. Upstreams are required; the other defaults suit most.
type Options struct {
	// Gate decides about requests; nil admits all of them.
	Gate *tidegate.Gate
	// HTTP says how callers are identified and refusals answered. Its ClientIP also
	// says whose forwarding headers and request ids are trusted.
	HTTP httplimit.Options
	// Slip returns the slip of a refusal, which its client gets: see [httplimit.SlipHeader]. nil
	// means that there are none. It must keep neither checks nor keys.
	Slip func(checks []tidegate.Check, d *tidegate.Decision) string
	// ReadsHeader reports whether rules read the header of that name. A trailer of that
	// name is dropped, since it could contradict the header. nil means that they read none.
	ReadsHeader func(name string) bool
	// Upstreams are the servers behind the gateway: http or https, with a path if it is
	// to be prepended to every request's path.
	Upstreams []*url.URL
	// Transport configures connections to upstreams.
	Transport Transport
	// Limits bound what a connection and a request may take.
	Limits Limits
	// Paths says what to do with ambiguous paths.
	Paths Paths
	// Health configures the health checks of upstreams.
	Health Health
	// IdleGrace is how long Shutdown leaves idle connections open, so that their clients
	// can send one more request and be told that the connection ends; 0 means 5s.
	IdleGrace time.Duration
	// Store is the name of the gate's store in the access log's decided_by; "" means
	// store.
	Store string
	// OwnPath is a path that Own answers instead of the upstreams, and that no rule is asked
	// about; "" means none.
	OwnPath string
	Own     http.Handler
	// Deferrer keeps requests that rules with `defer` refuse; nil means that none are kept.
	Deferrer Deferrer
	// DeferPath is the path below which Deferrer answers, with a slash at its end.
	DeferPath string
	// AccessLog gets a line per request.
	AccessLog accesslog.Log
	// Log gets what an operator should know, such as an upstream that fails; nil means
	// that nothing is logged.
	Log *slog.Logger
	// Observer is called for requests and tries; nil means no observer.
	Observer Observer
	// Tracer begins the spans of requests; nil means that there are none.
	Tracer Tracer
	// Inflight is called with the change in the number of requests at the upstreams: 1 before the
	// first try of a request, and -1 when its answer has ended. nil means that nobody is told.
	Inflight func(delta int)
	// Usable is called when an upstream is ejected because it fails, and when it gets
	// requests again; nil means that nobody is told.
	Usable func(upstream string, usable bool)
}

// Transport configures connections to upstreams.
type Transport struct {
	Connect   time.Duration // timeout for a connection and its TLS handshake; 0 means 5s
	Idle      time.Duration // how long an idle connection is kept; 0 means 90s, negative means that none is
	IdleConns int           // idle connections kept per upstream; 0 means 1024
	TLS       *tls.Config   // for https; nil trusts the authorities of the system
}

// Limits bound what a connection and a request may take.
type Limits struct {
	HeaderBytes int           // of the request line and all headers; 0 means 64 KiB
	HeaderLines int           // 0 means 128
	URI         int           // bytes of the request target; 0 means 8 KiB
	Body        int64         // bytes of a request body; 0 means any
	ReadHeader  time.Duration // from the first byte, or the connection, until the end of the headers; 0 means 10s
	Read        time.Duration // until the end of the request body; 0 means any
	Write       time.Duration // from the request headers until the response is sent, streams included; 0 means any
	Idle        time.Duration // between two requests of a connection; 0 means 2m
	Stall       time.Duration // without progress in the middle of a body, the client's or the response's; 0 means 1m, negative any
	Tunnel      time.Duration // of silence on both sides of a WebSocket, or of a request answered while its body is sent; 0 means 1h, negative any
	Upstream    time.Duration // from the end of a request until the response headers, and without progress in sending a body; 0 means 1m, negative any
	Requests    int           // in flight at once, more are answered 503; 0 means any
	Connections int           // open at once, more are answered 503, and many more are closed; 0 means any
}

// Paths says what to do with paths that two servers may read in two ways.
type Paths = strict.Paths

// Health configures the health checks of upstreams. An upstream that several times in a
// row cannot be connected to, or does not answer in time, is ejected for a while. With
// a Path, upstreams are also probed.
type Health struct {
	Path           string        // that probes GET; "" means no probes
	Every          time.Duration // 0 means 5s
	Timeout        time.Duration // 0 means 2s
	UnhealthyAfter int           // failures in a row; 0 means 3
}

// complete fills in the defaults, and returns what is wrong with the options.
func (o *Options) complete() error {
	var errs []error
	if len(o.Upstreams) == 0 {
		errs = append(errs, errors.New("gateway: no upstream to send requests to; name one, like http://127.0.0.1:9000"))
	}
	for _, u := range o.Upstreams {
		errs = append(errs, checkUpstream(u))
	}
	if p := o.Health.Path; p != "" && !strings.HasPrefix(p, "/") {
		errs = append(errs, fmt.Errorf("gateway: the health path %q has to start with a slash", p))
	}
	o.Transport.complete()
	o.Limits.complete()
	o.Health.complete()
	o.Store = cmp.Or(o.Store, tidegate.OriginStore.String())
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

func checkUpstream(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("gateway: an upstream is nil")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("gateway: upstream %s: http and https are spoken, not %q", u.Redacted(), u.Scheme)
	case u.Host == "" || u.Opaque != "":
		return fmt.Errorf("gateway: upstream %s names no host; write it like http://127.0.0.1:9000", u.Redacted())
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("gateway: upstream %s: only scheme, host and path are used; leave out the rest", u.Redacted())
	}
	return nil
}

func (t *Transport) complete() {
	t.Connect = cmp.Or(t.Connect, 5*time.Second)
	t.Idle = cmp.Or(t.Idle, 90*time.Second)
	t.IdleConns = cmp.Or(t.IdleConns, 1024)
}

func (l *Limits) complete() {
	l.HeaderLines = cmp.Or(l.HeaderLines, 128)
	l.URI = cmp.Or(l.URI, 8<<10)
	l.Upstream = max(0, cmp.Or(l.Upstream, time.Minute))
}

func (h *Health) complete() {
	h.Every = cmp.Or(h.Every, 5*time.Second)
	h.Timeout = cmp.Or(h.Timeout, 2*time.Second)
	h.UnhealthyAfter = cmp.Or(h.UnhealthyAfter, 3)
}
