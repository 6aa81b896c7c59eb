package grpclimit

import (
	"net/http"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// decider decides about a call or a message.
type decider interface {
	decide(r *http.Request) (tidegate.Decision, visit)
}

// visit is what is left to do when a call ends; nil means nothing.
type visit interface {
	End(o tidegate.Outcome) error
}

// Limit is shorthand for Options{}.Limit(lim, key).
func Limit(lim *tidegate.Limiter, key httplimit.KeyFunc) *Server { return Options{}.Limit(lim, key) }

// Limit returns a Server that charges lim one event per call, under the key that key finds:
// httplimit.Header("x-api-key") takes it from metadata, httplimit.IP from the peer,
// httplimit.ContextValue from what an interceptor before this one has put into the context,
// and [Method] counts by method. Options.Missing says what happens to a call without a key.
// A server for HTTP and one for gRPC that share lim share its counters.
//
// If lim has a Concurrency limit, the call holds a slot until its handler returns or panics,
// or its client cancels it. Such a Limiter cannot count messages, which hold no slots: chain
// two Servers.
func (o Options) Limit(lim *tidegate.Limiter, key httplimit.KeyFunc) *Server {
	if lim == nil {
		panic("grpclimit: Limit: the limiter is nil")
	}
	if key == nil {
		panic("grpclimit: Limit: the key function is nil; for one counter per client address use httplimit.IP()")
	}
	o.complete()
	front := o.front(lim.Limits()...)
	d := &limiter{front: front, lim: lim, key: key}
	for _, l := range lim.Limits() {
		d.holds = d.holds || l.Algorithm == tidegate.Concurrency
	}
	if d.holds && o.Messages {
		panic("grpclimit: Limit: messages hold no slots; count them by a limiter without a Concurrency limit")
	}
	return &Server{o: o, front: front, decider: d}
}

// Method is a key function that counts calls by their method.
func Method(r *http.Request) (string, bool) { return r.URL.Path, true }

// limiter is the decider of Limit.
type limiter struct {
	front *httplimit.Front
	lim   *tidegate.Limiter
	key   httplimit.KeyFunc
	holds bool // lim has a Concurrency limit
}

func (l *limiter) decide(r *http.Request) (tidegate.Decision, visit) {
	readMetadata(r)
	key, counted, err := l.front.Key(r, l.key)
	switch {
	case err != nil:
		return tidegate.Decision{Err: err}, nil
	case !counted:
		return tidegate.Decision{OK: true, Granted: 1}, nil
	case !l.holds:
		return l.lim.Allow(r.Context(), key), nil
	}
	held := l.lim.Acquire(r.Context(), key)
	return held.Decision, slot{held}
}

// slot is held until the call ends.
type slot struct{ held *tidegate.Reservation }

func (s slot) End(tidegate.Outcome) error { return s.held.Cancel() }

// Gate is shorthand for Options{}.Gate(gate).
func Gate(gate *tidegate.Gate) *Server { return Options{}.Gate(gate) }

// Gate returns a Server that asks gate about every call. To its rules a call is a POST
// request whose path is the method, as in "match: POST /shop.v1.Orders/". Beyond what package
// httplimit lets them read, they can read "metadata NAME". There is no body, no cookie and no
// query to read.
//
// A call that a rule queues waits for its turn, for as long as its context lasts. Slots are
// held until the handler returns or panics, or the client cancels the call. A limit that
// counts by status counts the HTTP status of the code that the handler returns: see [Status].
// The call stays charged if the client has left before that. An estimate stays charged unless
// the handler calls [SetCost].
func (o Options) Gate(gate *tidegate.Gate) *Server {
	if gate == nil {
		panic("grpclimit: Gate: the gate is nil")
	}
	o.complete()
	front := o.front()
	ip := &o.ClientIP
	believes := len(ip.Trusted) > 0 || ip.TrustUnix || ip.TrustPeer != nil
	return &Server{o: o, front: front, decider: &gated{front: front, gate: gate, believes: believes}}
}

// gated is the decider of Gate.
type gated struct {
	front    *httplimit.Front
	gate     *tidegate.Gate
	believes bool // trusted peers say in metadata whom they forward for
}

func (g *gated) decide(r *http.Request) (d tidegate.Decision, end visit) {
	g.front.Ask(r, func(q *tidegate.Request) {
		q.Values = &values{Values: q.Values, request: r, believes: g.believes}
		var v *tidegate.Visit
		if d, v = g.gate.Enter(r.Context(), q); v != nil {
			end = v
		}
	})
	return d, end
}
