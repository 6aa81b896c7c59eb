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

// trips sends requests to upstreams: to one, and to another if the first could
// not be reached.
type trips struct {
	pool     pool
	observer Observer
	log      *slog.Logger
	ejecting sync.Mutex // so that no two leave each other alone
}

// noUpstreamError: all are out of order.
type noUpstreamError struct{ after time.Duration }

func (e *noUpstreamError) Error() string {
	return fmt.Sprintf("all upstreams are out of order, the next is tried in %s", e.after)
}

// RoundTrip implements http.RoundTripper.
func (t *trips) RoundTrip(req *http.Request) (*http.Response, error) {
	x := exchangeOf(req.Context())
	target, body := req.URL, keptBody(req)
	start := time.Now()
	u := t.pool.pick(start, nil)
	if u == nil {
		return nil, &noUpstreamError{t.pool.back(start)}
	}
	req.URL = u.address(target)
	res, err := t.try(x, u, req)
	if err == nil || !x.mayRetry(body, err) {
		return res, err
	}
	other := t.pool.pick(time.Now(), u)
	if other == nil { // who could not be connected to is not asked again at once
		return nil, err
	}
	x.record.Retries++
	again := req.WithContext(req.Context()) // a copy: somebody may still look at the first
	again.URL = other.address(target)
	return t.try(x, other, again)
}

// try has u answer the request, which is addressed to it.
func (t *trips) try(x *exchange, u *upstream, req *http.Request) (*http.Response, error) {
	if x.upstream != nil {
		x.upstream.inflight.Add(-1)
	} else {
		x.gateway.inflight(1)
	}
	x.upstream, x.record.Upstream = u, u.name
	u.inflight.Add(1)
	start := time.Now()
	res, err := u.RoundTrip(req)
	if err == nil || !notConnected(err) {
		x.reached.Store(true)
	}
	took := time.Since(start)
	x.record.UpstreamTime += took
	t.judge(x, u, start, err)
	if t.observer != nil {
		try := Try{Upstream: u.name, Took: took, Err: err, Retry: x.record.Retries > 0}
		if res != nil {
			try.Status = res.StatusCode
		}
		t.observer.Tried(try)
	}
	return res, err
}

// judge learns from a try how the upstream is. Its answers count as health,
// whatever they say; what the client broke off says nothing, and neither does what this
// machine could not do. Nor does a request that took too long while others were answered:
// who asks for something slow could have any upstream ejected.
func (t *trips) judge(x *exchange, u *upstream, start time.Time, err error) {
	switch {
	case err == nil:
		if u.health.succeeded(time.Now()) {
			x.gateway.usable(u, true)
			t.log.Info("upstream is back", slog.String("upstream", u.name))
		}
	case x.Err() != nil || x.body.err() != nil || isOwnFault(err):
	case isTimeout(err) && u.health.answeredSince(start):
	case notConnected(err) || isTimeout(err):
		t.ejecting.Lock()
		pause := u.health.failed(time.Now(), t.pool.last(u))
		t.ejecting.Unlock()
		switch {
		case pause > 0:
			u.closeIdle()
			x.gateway.usable(u, false)
			t.log.Warn("upstream fails; it is ejected", slog.String("upstream", u.name), slog.Duration("for", pause), slog.String("error", err.Error()))
		case pause < 0:
			x.gateway.usable(u, true)
			t.log.Warn("upstream still fails, and is used since there is no other", slog.String("upstream", u.name), slog.String("error", err.Error()))
		}
	}
}

// mayRetry reports whether the client has noticed nothing and nothing of the request was
// sent. After that it is not sent again, whatever its method: it was counted once.
func (x *exchange) mayRetry(body *kept, err error) bool {
	if x.Err() != nil || x.informed.Load() || x.reached.Load() || x.body.err() != nil {
		return false
	}
	return notConnected(err) && (body == nil || !body.touched.Load())
}

// kept is a body that a failed try leaves as it is, unless it was read.
type kept struct {
	io.Reader
	touched atomic.Bool
}

// keptBody puts a kept one in the place of the request's; nil: there is none.
func keptBody(req *http.Request) *kept {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	b := &kept{Reader: req.Body}
	req.Body = b
	return b
}

func (b *kept) Read(p []byte) (int, error) {
	b.touched.Store(true)
	return b.Reader.Read(p)
}

// Close leaves it to the proxy, which knows when nobody needs the body any more.
func (b *kept) Close() error { return nil }
