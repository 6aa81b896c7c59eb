// Package gateway is a reverse proxy that limits requests. It passes on the
// requests that the rules admit, in the order and at the pace that the rules set,
// and settles costs by the upstream's answer.
//
// A request passes these stages: a check of its HTTP, which refuses ambiguous
// requests before any rule is read; the gate, which refuses, denies or queues it;
// and a healthy upstream. The answer goes back unbuffered.
//
// It does not cache, compress, rewrite or authenticate, and does not know where
// counters live. Start with [New].
package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/listen"
)

// Gateway is an http.Handler. Serve it with its own Serve, which sees what net/http hides
// from handlers: requests with two lengths, and the number of connections.
type Gateway struct {
	o             Options
	trustsProxies bool // some peers are trusted proxies
	records       bool // there is an access log, an observer or a tracer
	pool          pool
	balancer      balancer
	handler       http.Handler // the gate, then forward
	server        *listen.Server

	requests atomic.Int64 // in flight

	life   context.Context // ends with Close
	stop   context.CancelFunc
	probes sync.WaitGroup // health probes
}

// New returns a Gateway, which probes its upstreams until Close is called.
func New(o Options) (*Gateway, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	g := &Gateway{o: o}
	g.trustsProxies = len(o.HTTP.ClientIP.Trusted) > 0 || o.HTTP.ClientIP.TrustUnix
	g.records = o.AccessLog.To != nil || o.Observer != nil || o.Tracer != nil
	for _, u := range o.Upstreams {
		g.pool = append(g.pool, newUpstream(u, &g.o, g.reclaim))
	}
	g.balancer = balancer{pool: g.pool, observer: o.Observer, log: o.Log}
	g.handler = http.HandlerFunc(g.forward)
	if o.Gate != nil {
		rest := o.HTTP
		rest.Fate = func(r *http.Request) httplimit.Fate { return exchangeOf(r.Context()).fate }
		if o.Deferrer != nil {
			rest.OnRefusal = g.keep
		}
		gate := o.Gate
		if g.records || o.Slip != nil {
			gate = gate.Observe(observeDecision)
		}
		g.handler = rest.Gate(gate)(g.handler)
	}
	g.life, g.stop = context.WithCancel(context.Background())
	g.server = g.newServer()
	if o.Health.Path != "" {
		for _, u := range g.pool {
			g.probes.Go(func() { g.probe(g.life, u) })
		}
	}
	return g, nil
}

// observeDecision adds a decision of the gate to the access log record of its request, and the
// slip of a refusal to its response.
func observeDecision(q *tidegate.Request, checks []tidegate.Check, d tidegate.Decision) {
	exchangeOf(httplimit.HTTPRequest(q).Context()).recordDecision(checks, &d)
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inFlight := g.requests.Add(1)
	defer g.requests.Add(-1)
	x, r := g.begin(w, r)
	defer x.end()
	if p := g.precheck(x, r, inFlight); p != nil {
		x.reply(p)
	} else if g.o.OwnPath != "" && r.URL.Path == g.o.OwnPath {
		g.o.Own.ServeHTTP(&x.writer, r)
	} else if g.o.Deferrer != nil && strings.HasPrefix(r.URL.Path, g.o.DeferPath) {
		g.o.Deferrer.ServeHTTP(&x.writer, r)
	} else {
		if x.span != nil {
			x.span.Deciding()
		}
		g.handler.ServeHTTP(&x.writer, r)
	}
	x.finished = true
}

// precheck returns why a request is refused before it gets to the gate; nil means that it
// is not. inFlight is the number of requests being served, this one included.
func (g *Gateway) precheck(x *exchange, r *http.Request, inFlight int64) *problem {
	if p := x.client.Malformed(); p != nil {
		return p
	}
	if p := g.inspect(r); p != nil {
		return p
	}
	if p := x.client.Surplus(); p != nil {
		return p
	}
	if limit := g.o.Limits.Requests; limit > 0 && inFlight > int64(limit) {
		return unavailable("Too many requests are in flight.", time.Second)
	}
	onlyWebSocket(r)
	return nil
}

// UpstreamState is the state of an upstream right now.
type UpstreamState struct {
	URL      string
	Usable   bool
	InFlight int64
}

// Upstreams returns the state of all upstreams, in the order of Options.
func (g *Gateway) Upstreams() []UpstreamState {
	now := time.Now()
	states := make([]UpstreamState, len(g.pool))
	none := true
	for i, u := range g.pool {
		states[i] = UpstreamState{u.name, u.health.usable(now), u.inflight.Load()}
		none = none && !states[i].Usable
	}
	for i, u := range g.pool {
		states[i].Usable = states[i].Usable || none && !u.health.isDown() // see pool.pick
	}
	return states
}

// InFlight returns how many requests are being served, tunnels included.
func (g *Gateway) InFlight() int64 { return g.requests.Load() }

// Connections returns how many client connections are open.
func (g *Gateway) Connections() int64 { return g.server.Connections() }

// reportInflight tells Options.Inflight that so many more requests are with upstreams.
func (g *Gateway) reportInflight(delta int) {
	if g.o.Inflight != nil {
		g.o.Inflight(delta)
	}
}

// reportUsable tells Options.Usable whether u can be used.
func (g *Gateway) reportUsable(u *upstream, usable bool) {
	if g.o.Usable != nil {
		g.o.Usable(u.name, usable)
	}
}
