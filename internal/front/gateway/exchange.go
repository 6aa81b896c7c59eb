package gateway

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// exchange is a request and its response on their way through the gateway. It is the
// context of the request, so that every stage finds it.
type exchange struct {
	context.Context
	gateway    *Gateway
	method     string
	http1      bool
	connInfo   *connInfo // nil if the connection did not come through Serve
	trusted    bool      // the peer is a trusted proxy
	writer     writer
	body       body
	own        *ownHeaders // set while the proxy runs
	costFinder *costFinder // nil if the cost is not in the response body

	start     time.Time
	record    accesslog.Record
	upstream  *upstream   // of the last try; nil before the first
	sent1xx   atomic.Bool // the client was sent a 1xx of the upstream
	talks     atomic.Bool // HTTP/2: the upstream answers while the body is sent
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
	return x.Context.Value(key)
}

// exchangeOf returns the exchange of a request; nil if it did not come through a Gateway.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// begin returns the exchange of r, and r for the stages to come.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request) (*exchange, *http.Request) {
	x := &exchange{Context: r.Context(), gateway: g, method: r.Method, http1: r.ProtoMajor == 1, connInfo: connInfoOf(r.Context())}
	x.start = time.Now()
	x.writer = writer{ResponseWriter: w, exchange: x}
	x.trusted = g.trustsProxies && g.o.HTTP.ClientIP.TrustsPeer(r)
	x.record = accesslog.Record{ID: requestID(r, x.trusted), Method: r.Method, Host: r.Host, Path: r.URL.Path}
	w.Header()["X-Request-Id"] = []string{x.record.ID}
	if g.records {
		x.record.Time, x.record.Proto = x.start, r.Proto
		x.record.Client = g.o.HTTP.ClientIP.Addr(r)
	}
	r = r.WithContext(x)
	if r.Body != nil && r.Body != http.NoBody {
		x.body.open(w, r, &g.o.Limits)
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
	switch {
	case x.writer.hijacked:
	case !x.http1:
		x.leaveStream()
	case x.body.pending():
		x.linger()
	}
	if x.gateway.records {
		x.report()
	}
}

// lingering is how long a client may take to send the rest of a body that is no longer
// wanted, before its connection is closed.
const lingering = 2 * time.Second

// linger bounds how long net/http reads the rest of a body in order to reuse the
// connection. A client whose body has timed out gets no more time.
func (x *exchange) linger() {
	patience := lingering
	if isTimeout(x.body.err()) {
		patience = 0
	}
	if c := x.connInfo.watched(); c != nil {
		c.hurry(patience)
		return
	}
	_ = http.NewResponseController(x.writer.ResponseWriter).SetReadDeadline(time.Now().Add(patience)) // or there is no connection to wait for
}

// leaveStream bounds how long net/http waits for the client to read the rest of the
// response: the stream stays open for that after the handler has returned.
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

// reply sends a response of the gateway itself.
func (x *exchange) reply(p *problem) {
	x.record.Reason = p.Detail
	p.write(&x.writer, x.method)
}

// recordDecision puts the gate's decision into the record. It keeps neither checks nor keys.
func (x *exchange) recordDecision(checks []tidegate.Check, d *tidegate.Decision) {
	x.record.Decided(checks, d, x.gateway.o.Store, &x.gateway.o.AccessLog)
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
}
