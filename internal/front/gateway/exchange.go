package gateway

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/lang/usage"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// exchange is a request and its response on their way through the gateway. It is the
// context of the request, so that every stage finds it.
type exchange struct {
	context.Context
	gateway    *Gateway
	method     string
	http1      bool
	trusted    bool // the peer is a trusted proxy
	client     listen.Client
	watch      atomic.Pointer[listen.Watch] // nil before somebody waits for the context to end
	writer     writer
	body       body
	headers    struct{ id, slip [1]string } // of the response, where they need no memory of their own
	costFinder *usage.Finder                // nil if the cost is not in the response body

	start     time.Time
	span      Span // nil if requests are not traced
	record    accesslog.Record
	upstream  *upstream   // of the last try; nil before the first
	sent1xx   atomic.Bool // the client was sent a 1xx of the upstream
	maybeSent atomic.Bool // an upstream may have got something of the request
	fate      httplimit.Fate
	finished  bool // the handler returned, so the response is complete
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
	return x.current().Value(key)
}

// Done implements context.Context. From the first call on, the client is watched.
func (x *exchange) Done() <-chan struct{} {
	if x.watch.Load() == nil {
		if w := x.client.Watch(x.Context); w != nil && !x.watch.CompareAndSwap(nil, w) {
			w.Stop()
		}
	}
	return x.current().Done()
}

// Err implements context.Context.
func (x *exchange) Err() error { return x.current().Err() }

// current returns the context that ends when the client leaves, if somebody waits for that.
func (x *exchange) current() context.Context {
	if w := x.watch.Load(); w != nil {
		return w
	}
	return x.Context
}

// hasLeft reports whether the client left while the request was queued.
func (x *exchange) hasLeft() bool {
	if w := x.watch.Load(); w != nil && x.record.Wait > 0 {
		w.Look()
	}
	return x.Err() != nil
}

// exchangeOf returns the exchange of a request; nil if it did not come through a Gateway.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin returns the exchange of r, and r for the stages to come.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request) (*exchange, *http.Request) {
	x := &exchange{Context: r.Context(), gateway: g, method: r.Method, http1: r.ProtoMajor == 1, start: time.Now()}
	x.client.Open(g.server, w, r, x.start)
	x.writer = writer{ResponseWriter: w, exchange: x}
	x.trusted = g.trustsProxies && g.o.HTTP.ClientIP.TrustsPeer(r)
	x.record = accesslog.Record{ID: requestID(r, x.trusted), Method: r.Method, Host: r.Host, Path: r.URL.Path}
	x.headers.id[0] = x.record.ID
	w.Header()["X-Request-Id"] = x.headers.id[:]
	if g.records {
		x.record.Time, x.record.Proto = x.start, r.Proto
		x.record.Client = g.o.HTTP.ClientIP.Addr(r)
	}
	if g.o.Tracer != nil {
		x.span = g.o.Tracer.Begin(r, x.trusted, x.start)
		x.record.Trace = x.span.ID()
	}
	r = r.WithContext(x)
	if r.Body != nil && r.Body != http.NoBody {
		x.body.open(r, x)
		if r.Trailer != nil {
			x.body.trailers = g.filterTrailers(r)
		}
		r.Body = &x.body
	}
	return x, r
}

// end is called when the handler has returned, or panicked to abort the response.
func (x *exchange) end() {
	if x.upstream != nil {
		x.upstream.inflight.Add(-1)
		x.gateway.reportInflight(-1)
	}
	if !x.writer.hijacked {
		x.client.End(x.body.pending())
	}
	if x.gateway.records {
		x.report()
	}
	if w := x.watch.Load(); w != nil {
		w.Stop()
	}
}

// reply sends a response of the gateway itself.
func (x *exchange) reply(p *problem) {
	x.record.Reason = p.Detail
	p.Write(&x.writer, x.method)
}

// recordDecision puts the gate's decision into the record. It keeps neither checks nor keys.
func (x *exchange) recordDecision(checks []tidegate.Check, d *tidegate.Decision) {
	x.record.Decided(checks, d, x.gateway.o.Store, &x.gateway.o.AccessLog)
	if slip := x.gateway.o.Slip; slip != nil && !d.OK {
		x.headers.slip[0] = slip(checks, d)
		x.writer.Header()[httplimit.SlipHeader] = x.headers.slip[:]
	}
	if x.span != nil {
		x.span.Decided(&x.record)
	}
}

// report completes the record and passes it to the access log and the observer.
func (x *exchange) report() {
	r := &x.record
	r.Duration = time.Since(x.start)
	r.Status, r.Sent, r.Received = x.writer.status, x.writer.sent.Load(), x.body.received()
	r.Cut = !x.finished || x.writer.clientGone || r.Status == 0
	if r.Status == 0 && x.Err() != nil {
		r.Status = statusClientGone
	}
	if log := &x.gateway.o.AccessLog; log.To != nil {
		log.Write(r)
	}
	if o := x.gateway.o.Observer; o != nil {
		o.Done(r)
	}
	if x.span != nil {
		x.span.End(r)
	}
}
