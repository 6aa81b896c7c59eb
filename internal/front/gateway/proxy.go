package gateway

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/lang/usage"
)

// newProxy returns the last stage, which sends requests to upstreams. Streams are flushed
// as they come; a body of known length is flushed when it is complete or a buffer is full.
func newProxy(g *Gateway) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      &balancer{pool: g.pool, observer: g.o.Observer, log: g.o.Log},
		BufferPool:     new(buffers),
		ModifyResponse: modifyResponse,
		ErrorHandler:   g.handleError,
		ErrorLog:       errorLog(g.o.Log),
	}
}

// forward passes an admitted request on.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	if x.Err() != nil { // the client left while the request was queued
		abort()
	}
	x.own = ownHeadersPool.Get().(*ownHeaders)
	defer x.own.release()
	x.own.save(w.Header())
	x.costFinder = usage.NewFinder(httplimit.VisitOf(r.Context()))
	g.proxy.ServeHTTP(w, r)
}

// rewrite prepares the request to the upstream. The address is set for each try.
func rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it was sent, even if it does not parse
	pr.Out.Trailer = pr.In.Trailer           // the same map, which is filled at the end of the body
	setForwarded(pr.Out.Header, pr.In, x)
	if x.span != nil {
		x.span.Forward(pr.Out.Method, pr.Out.Header)
	}
	if x.costFinder != nil {
		pr.Out.Header["Accept-Encoding"] = []string{"identity"} // a compressed body cannot be inspected
	}
}

var errStatus = errors.New("the answer has a status below 100")

// modifyResponse is called with the headers of the upstream's response.
func modifyResponse(res *http.Response) error {
	if res.StatusCode < 100 { // net/http would panic
		return errStatus
	}
	x := exchangeOf(res.Request.Context())
	if x.sent1xx.Load() {
		x.own.restore(x.writer.Header())
	}
	x.own.override(res.Header)
	if x.costFinder != nil && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body = x.costFinder.Wrap(res)
	}
	return nil
}

// handleError answers a request that got no response from an upstream.
func (g *Gateway) handleError(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	if x.Err() != nil && x.body.err() == nil { // the client is gone
		abort()
	}
	if x.sent1xx.Load() {
		x.own.restore(w.Header())
	}
	p := g.problemOf(x, err)
	x.record.Reason = p.Detail
	x.fate = x.fateOf(err)
	p.Write(w, x.method)
	if p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout { // an ejection is logged once, by recordResult
		g.o.Log.LogAttrs(context.Background(), slog.LevelWarn, "upstream does not answer",
			slog.String("id", x.record.ID), slog.String("upstream", x.record.Upstream), slog.Int("status", p.Status), slog.String("error", err.Error()))
	}
}

// fateOf returns whether a failed request stays charged. One that failed through its own
// client counts like any other.
func (x *exchange) fateOf(err error) httplimit.Fate {
	var none *noUpstreamError
	switch {
	case x.body.err() != nil:
		return httplimit.Served
	case x.maybeSent.Load():
		return httplimit.Lost
	case errors.As(err, &none) || notConnected(err):
		return httplimit.Unsent
	}
	return httplimit.Lost
}

// abort closes the connection. Returning would answer 200, which a client that has only
// closed its own side would see.
func abort() { panic(http.ErrAbortHandler) }

// problemOf returns an answer that says what failed, but nothing about the upstreams.
func (g *Gateway) problemOf(x *exchange, err error) *problem {
	var none *noUpstreamError
	switch cause := x.body.err(); {
	case cause != nil:
		return g.bodyProblem(cause)
	case errors.As(err, &none):
		return unavailable("No upstream is available right now.", none.retryAfter)
	case isLocalFailure(err):
		return unavailable("The gateway has no connection to spare right now.", time.Second)
	case isTimeout(err):
		return listen.NewProblem(http.StatusGatewayTimeout, "The upstream did not answer in time.")
	}
	return listen.NewProblem(http.StatusBadGateway, "The upstream cannot be reached, or its answer is not HTTP.")
}

func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

// errorLog returns a logger for the messages of net/http.
func errorLog(to *slog.Logger) *log.Logger { return slog.NewLogLogger(to.Handler(), slog.LevelDebug) }
