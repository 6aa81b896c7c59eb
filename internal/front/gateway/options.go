package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// Options is what a gateway stands before, and how it behaves. Upstreams are
// needed, the rest is right for most.
type Options struct {
	// Gate says who may pass; nil lets everybody.
	Gate *tidegate.Gate
	// HTTP is how requests are told apart and refusals are answered. Its
	// ClientIP also says whose forwarding headers and request ids are believed.
	HTTP httplimit.Options
	// ReadsHeader reports whether rules read the header of that name: a trailer must not
	// say it again, and otherwise. nil means that they read none.
	ReadsHeader func(name string) bool
	// Upstreams are the servers behind the gateway: http or https, with a path
	// if all paths are to be below it.
	Upstreams []*url.URL
	// Transport is how they are connected to.
	Transport Transport
	// Limits bound what a connection and a request may take.
	Limits Limits
	// Paths says what is done with paths that can be read in two ways.
	Paths Paths
	// Health is how upstreams are looked after.
	Health Health
	// Patience is how long clients get, at Shutdown, to come with one more request
	// and be told that their connection ends; 0 means 5s.
	Patience time.Duration
	// Store is what it is called where the gate's counters are, for those who are
	// told who decided; "" means store.
	Store string
	// AccessLog gets a line for every request.
	AccessLog AccessLog
	// Log is told what an operator should know, such as an upstream that went
	// away; nil tells nobody.
	Log *slog.Logger
	// Observer is told of requests and tries; nil is nobody.
	Observer Observer
	// Inflight is told that delta more requests, or fewer, are at the upstreams;
	// nil is nobody.
	Inflight func(delta int)
	// Usable is told when an upstream gets no more requests because it fails, and
	// when it does again; nil is nobody.
	Usable func(upstream string, usable bool)
}

// Transport is how upstreams are connected to.
type Transport struct {
	Connect   time.Duration // until a connection and its TLS are there; 0 means 5s
	Idle      time.Duration // that an unused connection is kept; 0 means 90s, negative that none is
	IdleConns int           // unused connections kept per upstream; 0 means 1024
	TLS       *tls.Config   // for https; nil trusts the authorities of the machine
}

// Limits bound what a connection and a request may take.
type Limits struct {
	HeaderBytes int           // of the whole head of a request; 0 means 64 KiB
	HeaderLines int           // 0 means 128
	URI         int           // bytes of the request target; 0 means 8 KiB
	Body        int64         // bytes of a request body; 0 means any
	ReadHeader  time.Duration // until the head of a request is there; 0 means 10s
	Read        time.Duration // until the whole request is there; 0 means any
	Write       time.Duration // from the head until the answer is sent; 0 means any. It ends streams, too
	Idle        time.Duration // between two requests of a connection; 0 means 2m
	Stall       time.Duration // that a client may not move in the middle of a body, its own or the answer's; 0 means 1m, negative any
	Tunnel      time.Duration // that both sides of a WebSocket, or of a body that is answered while it is sent, may be silent; 0 means 1h, negative any
	Upstream    time.Duration // from the end of a request until the head of the answer; 0 means 1m, negative any
	Requests    int           // in flight at once, more are answered 503; 0 means any
	Connections int           // open at once, more are answered 503, and many more are closed; 0 means any
}

// Paths says what is done with paths that can be read in two ways. The zero value
// answers 400 to all of them, so that no spelling of a path escapes a rule.
type Paths struct {
	EncodedSlash bool // pass %2F and backslashes on as they are
	CleanDots    bool // resolve . and .. before rules and upstream see the path
	MergeSlashes bool // make one slash of several before rules and upstream see the path
}

// Health is how upstreams are looked after. One that cannot be connected to, or
// does not answer in time, several times in a row is ejected for a while. With
// a Path it is also asked.
type Health struct {
	Path           string        // to GET from each upstream; "" asks nothing
	Every          time.Duration // 0 means 5s
	Timeout        time.Duration // 0 means 2s
	UnhealthyAfter int           // failures in a row; 0 means 3
}

// complete fills in the defaults, or says what cannot be served.
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
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
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
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 64<<10)
	l.HeaderLines = cmp.Or(l.HeaderLines, 128)
	l.URI = cmp.Or(l.URI, 8<<10)
	l.ReadHeader = cmp.Or(l.ReadHeader, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, 2*time.Minute)
	l.Stall = max(0, cmp.Or(l.Stall, time.Minute))
	l.Tunnel = max(0, cmp.Or(l.Tunnel, time.Hour))
	l.Upstream = max(0, cmp.Or(l.Upstream, time.Minute))
}

func (h *Health) complete() {
	h.Every = cmp.Or(h.Every, 5*time.Second)
	h.Timeout = cmp.Or(h.Timeout, 2*time.Second)
	h.UnhealthyAfter = cmp.Or(h.UnhealthyAfter, 3)
}
