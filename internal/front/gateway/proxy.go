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
)

// newProxy returns the last station: what comes here goes to an upstream. Streams
// are flushed as they come; a body of known length is not, until it is whole or a
// buffer is full.
func newProxy(g *Gateway) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      &trips{pool: g.pool, observer: g.o.Observer, log: g.o.Log},
		BufferPool:     new(buffers),
		ModifyResponse: answered,
		ErrorHandler:   g.failed,
		ErrorLog:       errorLog(g.o.Log),
	}
}

// forward is for requests that may pass.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	if x.Err() != nil { // its client left while it stood in line
		abort()
	}
	x.own = ownPool.Get().(*ownHeaders)
	defer x.own.release()
	x.own.keep(w.Header())
	x.settle = newSettling(httplimit.VisitOf(r.Context()))
	g.proxy.ServeHTTP(w, r)
}

// rewrite makes the request of the upstream. Its address is set for each try.
func rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.In.Context())
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery // as it was sent, whoever may be able to read it
	pr.Out.Trailer = pr.In.Trailer           // the same map: it is filled at the end of the body
	forwarding(pr.Out.Header, pr.In, x)
	if x.settle != nil {
		pr.Out.Header["Accept-Encoding"] = []string{"identity"} // what is compressed cannot be looked into
	}
}

var errStatus = errors.New("the answer has a status below 100")

// answered is called with the head of the upstream's answer.
func answered(res *http.Response) error {
	if res.StatusCode < 100 { // net/http would panic
		return errStatus
	}
	x := exchangeOf(res.Request.Context())
	if x.informed.Load() {
		x.own.restore(x.writer.Header())
	}
	x.own.override(res.Header)
	if x.settle != nil && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body = x.settle.watch(res)
	}
	return nil
}

// failed answers where the upstream did not.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	if x.Err() != nil && x.body.err() == nil { // nobody is there to be told
		abort()
	}
	if x.informed.Load() {
		x.own.restore(w.Header())
	}
	p := g.explain(x, err)
	x.record.Reason = p.Detail
	x.fate = x.fateOf(err)
	p.write(w, x.method)
	if p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout { // that all are out of order was said once
		g.o.Log.LogAttrs(context.Background(), slog.LevelWarn, "upstream does not answer",
			slog.String("id", x.record.ID), slog.String("upstream", x.record.Upstream), slog.Int("status", p.Status), slog.String("error", err.Error()))
	}
}

// fateOf says whether a request that failed stays charged. What its client did wrong
// is counted as what it is.
func (x *exchange) fateOf(err error) httplimit.Fate {
	var none *noUpstreamError
	switch {
	case x.body.err() != nil:
		return httplimit.Served
	case x.reached.Load():
		return httplimit.Lost
	case errors.As(err, &none) || notConnected(err):
		return httplimit.Unsent
	}
	return httplimit.Lost
}

// abort cuts the connection. To return would be to answer 200, and a client that
// has only ended its own side would see that.
func abort() { panic(http.ErrAbortHandler) }

// explain says whose fault it was, and no more: which upstreams there are is
// nobody's business.
func (g *Gateway) explain(x *exchange, err error) *problem {
	var none *noUpstreamError
	switch cause := x.body.err(); {
	case cause != nil:
		return g.bodyProblem(cause)
	case errors.As(err, &none):
		return overload("No upstream is available right now.", none.after)
	case isOwnFault(err):
		return overload("The gateway has no connection to spare right now.", time.Second)
	case isTimeout(err):
		return newProblem(http.StatusGatewayTimeout, "The upstream did not answer in time.")
	}
	return newProblem(http.StatusBadGateway, "The upstream cannot be reached, or its answer is not HTTP.")
}

func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}

// errorLog is for what net/http has to say.
func errorLog(to *slog.Logger) *log.Logger { return slog.NewLogLogger(to.Handler(), slog.LevelDebug) }
