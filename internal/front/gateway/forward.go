package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/listen"
	"tidegate.dev/tidegate/internal/lang/usage"
)

// forward passes an admitted request on, and the answer back.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	if x.hasLeft() {
		abort()
	}
	x.costFinder = usage.NewFinder(httplimit.VisitOf(r.Context()))
	out := newOutgoing(x, w, r)
	defer out.end()
	res, err := g.balancer.send(out)
	if err == nil && res.StatusCode < 100 { // net/http would panic
		_ = res.Body.Close()
		err = errStatus
	}
	switch {
	case err != nil:
	case res.StatusCode == http.StatusSwitchingProtocols:
		err = out.tunnel(res)
	default:
		out.relay(res)
	}
	if err != nil {
		g.handleError(x, w, err)
	}
}

var errStatus = errors.New("the answer has no final status")

// handleError answers a request that got no response from an upstream.
func (g *Gateway) handleError(x *exchange, w http.ResponseWriter, err error) {
	if x.Err() != nil && x.body.err() == nil { // the client is gone
		abort()
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

// isTimeout reports whether err is a time that ran out, of a connection or of a context.
func isTimeout(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}
