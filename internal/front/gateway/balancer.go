package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
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

// send sends a request to an upstream and returns its answer. If the Header of that is nil, its
// headers are in out.answer already.
func (b *balancer) send(out *outgoing) (*http.Response, error) {
	x := out.x
	now := time.Now()
	u := b.pool.pick(now, nil)
	if u == nil {
		return nil, &noUpstreamError{b.pool.retryAfter(now)}
	}
	res, err := b.attempt(out, u, now)
	if err == nil || !x.mayRetry(out.body, err) {
		return res, err
	}
	now = time.Now()
	other := b.pool.pick(now, u)
	if other == nil { // the one that failed is not tried again at once
		return nil, err
	}
	x.record.Retries++
	return b.attempt(out, other, now)
}

// attempt sends the request to u.
func (b *balancer) attempt(out *outgoing, u *upstream, start time.Time) (*http.Response, error) {
	x := out.x
	if x.upstream != nil {
		x.upstream.inflight.Add(-1)
	} else {
		x.gateway.reportInflight(1)
	}
	x.upstream, x.record.Upstream = u, u.name
	u.inflight.Add(1)
	res, err := u.send(out)
	if err == nil || !notConnected(err) {
		x.maybeSent.Store(true)
	}
	now := time.Now()
	took := now.Sub(start)
	x.record.UpstreamTime += took
	b.recordResult(x, u, start, now, err)
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
func (b *balancer) recordResult(x *exchange, u *upstream, start, now time.Time, err error) {
	switch {
	case err == nil:
		if u.health.succeeded(now) {
			x.gateway.reportUsable(u, true)
			b.log.Info("upstream is back", slog.String("upstream", u.name))
		}
	case x.Err() != nil || x.body.err() != nil || isLocalFailure(err):
	case isTimeout(err) && u.health.answeredSince(start):
	case notConnected(err) || isTimeout(err):
		b.ejecting.Lock()
		pause := u.health.failed(now, b.pool.isLast(u))
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
func (x *exchange) mayRetry(body *onceBody, err error) bool {
	if x.Err() != nil || x.sent1xx.Load() || x.maybeSent.Load() || x.body.err() != nil {
		return false
	}
	return notConnected(err) && (body == nil || !body.wasRead.Load())
}
