package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// balancer sends each request to an upstream, and to another if the first could not be
// connected to.
type balancer struct {
	pool     pool
	observer Observer
	log      *slog.Logger
	ejecting sync.Mutex // so that two upstreams are not ejected because of each other
}

// noUpstreamError is returned when all upstreams are down.
type noUpstreamError struct{ retryAfter time.Duration }

func (e *noUpstreamError) Error() string {
	return fmt.Sprintf("all upstreams fail their health probes, the next one is in %s", e.retryAfter)
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	target, body := req.URL, makeRetryable(req)
	start := time.Now()
	u := b.pool.pick(start, nil)
	if u == nil {
		return nil, &noUpstreamError{b.pool.retryAfter(start)}
	}
	req.URL = u.urlFor(target)
	res, err := b.attempt(x, u, req)
	if err == nil || !x.mayRetry(body, err) {
		return res, err
	}
	other := b.pool.pick(time.Now(), u)
	if other == nil { // the one that failed is not tried again at once
		return nil, err
	}
	x.record.Retries++
	again := req.WithContext(req.Context()) // a copy, because the transport may still read the first
	again.URL = other.urlFor(target)
	return b.attempt(x, other, again)
}

// attempt sends the request, which is addressed to u.
func (b *balancer) attempt(x *exchange, u *upstream, req *http.Request) (*http.Response, error) {
	if x.upstream != nil {
		x.upstream.inflight.Add(-1)
	} else {
		x.gateway.reportInflight(1)
	}
	x.upstream, x.record.Upstream = u, u.name
	u.inflight.Add(1)
	start := time.Now()
	res, err := u.RoundTrip(req)
	if err == nil || !notConnected(err) {
		x.maybeSent.Store(true)
	}
	took := time.Since(start)
	x.record.UpstreamTime += took
	b.recordResult(x, u, start, err)
	try := Try{Upstream: u.name, Took: took, Err: err, Retry: x.record.Retries > 0}
	if res != nil {
		try.Status = res.StatusCode
	}
	if b.observer != nil {
		b.observer.Tried(try)
	}
	if x.span != nil {
		x.span.Tried(try)
	}
	return res, err
}

// recordResult updates the health of the upstream. Any answer counts as success, whatever its
// status. Requests that the client cancelled or this machine failed to send say nothing
// about the upstream. Neither does a request that timed out while others were answered:
// otherwise a client could get any upstream ejected by asking for something slow.
func (b *balancer) recordResult(x *exchange, u *upstream, start time.Time, err error) {
	switch {
	case err == nil:
		if u.health.succeeded(time.Now()) {
			x.gateway.reportUsable(u, true)
			b.log.Info("upstream is back", slog.String("upstream", u.name))
		}
	case x.Err() != nil || x.body.err() != nil || isLocalFailure(err):
	case isTimeout(err) && u.health.answeredSince(start):
	case notConnected(err) || isTimeout(err):
		b.ejecting.Lock()
		pause := u.health.failed(time.Now(), b.pool.isLast(u))
		b.ejecting.Unlock()
		switch {
		case pause > 0:
			u.closeIdle()
			x.gateway.reportUsable(u, false)
			b.log.Warn("upstream fails; it is ejected", slog.String("upstream", u.name), slog.Duration("for", pause), slog.String("error", err.Error()))
		case pause < 0:
			x.gateway.reportUsable(u, true)
			b.log.Warn("upstream still fails, and is used since there is no other", slog.String("upstream", u.name), slog.String("error", err.Error()))
		}
	}
}

// mayRetry reports whether nothing of the request was sent and the client has got nothing.
// Otherwise it is not sent again, whatever its method: it was counted once.
func (x *exchange) mayRetry(body *retryableBody, err error) bool {
	if x.Err() != nil || x.sent1xx.Load() || x.maybeSent.Load() || x.body.err() != nil {
		return false
	}
	return notConnected(err) && (body == nil || !body.wasRead.Load())
}

// retryableBody is a body that can be used for a second try, unless it was read.
type retryableBody struct {
	io.Reader
	wasRead atomic.Bool
}

// makeRetryable replaces the body of req and returns it; nil if there is none.
func makeRetryable(req *http.Request) *retryableBody {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	b := &retryableBody{Reader: req.Body}
	req.Body = b
	return b
}

func (b *retryableBody) Read(p []byte) (int, error) {
	b.wasRead.Store(true)
	return b.Reader.Read(p)
}

// Close does nothing: the proxy closes the body when it is no longer needed.
func (b *retryableBody) Close() error { return nil }
