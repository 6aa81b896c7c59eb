package gateway

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// exchange is a request and its answer on their way through the gateway. It is
// the context of the request, so that every station finds it.
type exchange struct {
	context.Context
	gateway *Gateway
	method  string
	http1   bool
	line    *line // nil: not one of ours
	trusted bool  // the peer is one of our own proxies
	writer  writer
	body    body
	own     *ownHeaders // while an upstream is asked
	settle  *settling   // nil: nothing to be found in the response body

	start    time.Time
	record   Record
	upstream *upstream   // that has the request; nil: none
	informed atomic.Bool // the client was sent a 1xx of the upstream's
	talks    atomic.Bool // over HTTP/2, with an upstream that answers while the body is sent
	reached  atomic.Bool // something of the request may have come to an upstream
	fate     httplimit.Fate
	finished bool // the answer is whole
}

type exchangeKey struct{}

// Value implements context.Context.
func (x *exchange) Value(key any) any {
	switch key.(type) {
	case exchangeKey:
		return x
	case queue.Waited:
		return &x.record.Wait
	}
	return x.Context.Value(key)
}

// exchangeOf is nil for a request that did not come through a Gateway.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin returns r for the stations to come.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request) (*exchange, *http.Request) {
	x := &exchange{Context: r.Context(), gateway: g, method: r.Method, http1: r.ProtoMajor == 1, line: lineOf(r.Context())}
	x.start = time.Now()
	x.writer = writer{ResponseWriter: w, exchange: x}
	x.trusted = g.trusts && g.o.HTTP.ClientIP.TrustsPeer(r)
	x.record = Record{ID: requestID(r, x.trusted), Method: r.Method, Host: r.Host, Path: r.URL.Path}
	w.Header()["X-Request-Id"] = []string{x.record.ID}
	if g.tells {
		x.record.Time, x.record.Proto = x.start, r.Proto
		x.record.Client = g.o.HTTP.ClientIP.Addr(r)
	}
	r = r.WithContext(x)
	if r.Body != nil && r.Body != http.NoBody {
		x.body.open(w, r, &g.o.Limits)
		if r.Trailer != nil {
			x.body.trailers = g.keepTrailers(r)
		}
		r.Body = &x.body
	}
	return x, r
}

// end is called when the handler is done, or has panicked to cut off the answer.
func (x *exchange) end() {
	if x.upstream != nil {
		x.upstream.inflight.Add(-1)
		x.gateway.inflight(-1)
	}
	switch {
	case x.writer.hijacked:
	case !x.http1:
		x.leaveStream()
	case x.body.pending():
		x.linger()
	}
	if x.gateway.tells {
		x.tell()
	}
}

// lingering is how long a client may take to send the rest of a body that nobody
// wants any more, before its connection is closed.
const lingering = 2 * time.Second

// linger keeps net/http, which reads some of such a rest to save the connection,
// from waiting for longer. A client that has stood still for too long gets no more time.
func (x *exchange) linger() {
	patience := lingering
	if isTimeout(x.body.err()) {
		patience = 0
	}
	if c := x.line.watched(); c != nil {
		c.hurry(patience)
		return
	}
	_ = http.NewResponseController(x.writer.ResponseWriter).SetReadDeadline(time.Now().Add(patience)) // or there is no connection to wait for
}

// leaveStream holds the client to taking what net/http still has of the answer: the
// stream stays open for that after the handler has returned.
func (x *exchange) leaveStream() {
	x.body.stall.close()
	x.writer.stall.close()
	l := &x.gateway.o.Limits
	if x.writer.sent.Load() == 0 || l.Stall <= 0 {
		return
	}
	latest := time.Now().Add(l.Stall)
	if l.Write > 0 {
		latest = earlier(latest, x.start.Add(l.Write))
	}
	_ = http.NewResponseController(x.writer.ResponseWriter).SetWriteDeadline(latest) // or the stream has ended
}

// answer is the gateway's own.
func (x *exchange) answer(p *problem) {
	x.record.Reason = p.Detail
	p.write(&x.writer, x.method)
}

// decided notes what the gate said. Checks and their keys are the gate's.
func (x *exchange) decided(checks []tidegate.Check, d *tidegate.Decision) {
	r, log := &x.record, &x.gateway.o.AccessLog
	r.Decision = outcome.Of(d).String()
	if outcome.Decided(d) {
		r.DecidedBy = outcome.DecidedBy(d.Receipt.Origin, x.gateway.o.Store)
	}
	l := d.Limit
	if l == nil {
		return
	}
	r.Rule = l.Name
	if l.Terms != nil && l.Terms.Rule != "" {
		r.Rule = l.Terms.Rule
	}
	if d.OK || log.To == nil {
		return
	}
	r.Limit = l
	for i := range checks {
		// A store around another may have a limit of its own for a counter.
		if c := &checks[i]; c.Limit == l || c.Limit != nil && c.Limit.Identity() == l.Identity() {
			r.Key = log.Keys.show(c.Key, l)
			return
		}
	}
}

// tell gives the record to those who asked for it.
func (x *exchange) tell() {
	r := &x.record
	r.Duration = time.Since(x.start)
	r.Status, r.Sent, r.Received = x.writer.status, x.writer.sent.Load(), x.body.received()
	r.Cut = !x.finished || x.writer.gone || r.Status == 0
	if r.Status == 0 && x.Err() != nil {
		r.Status = clientLeft
	}
	if log := &x.gateway.o.AccessLog; log.To != nil {
		log.write(r)
	}
	if o := x.gateway.o.Observer; o != nil {
		o.Done(r)
	}
}
