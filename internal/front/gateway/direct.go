package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// directTransport sends requests without a body over HTTP/1.1, on the goroutine of the caller.
// http.Transport has two goroutines per connection, so that a request may be answered while
// its body is still being sent. Without a body they are not needed, and switching between
// them costs more than everything else that a gateway does. Other requests are for an
// http.Transport; see handles.
//
// An idle connection is checked before it is reused: one that was closed, or on which the
// upstream sent something unasked, is closed.
type directTransport struct {
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	address     string
	headTimeout time.Duration // for the response headers; 0 means none
	idleTimeout time.Duration // 0 means none
	maxIdle     int           // connections

	mu          sync.Mutex
	idle        []*upstreamConn // under mu: the most recently used is the last
	expiry      *time.Timer     // under mu: nil before the first idle connection
	discardIdle bool            // under mu: keep no connection until the next request
}

// handles reports whether a request is one for this transport: idempotent and without a body.
func (t *directTransport) handles(out *outgoing) bool {
	r := out.in
	if t == nil || out.body != nil || r.ContentLength > 0 || len(r.Trailer) > 0 {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return false
	}
	if r.URL.Opaque != "" || hasControl(r.URL.RawQuery) || !isPlainHost(r.Host) { // which http.Transport translates or refuses
		return false
	}
	return len(r.Header["Upgrade"]) == 0 && len(r.Header["Expect"]) == 0
}

// hasControl reports whether s has control characters.
func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// isPlainHost reports whether a host is sent as it is.
func isPlainHost(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '-', c == ':', c == '_', c == '[', c == ']':
		default:
			return false
		}
	}
	return true
}

// send sends a request for target at host, and returns the answer; see balancer.send.
func (t *directTransport) send(out *outgoing, target, host string) (*http.Response, error) {
	ctx, now := out.in.Context(), time.Now()
	for used := t.takeIdle(); used != nil; used = t.takeIdle() {
		if !used.stillIdle() || t.tooOld(used, now) {
			_ = used.Close()
			continue
		}
		res, err := t.sendOver(used, now, out, target, host)
		if err == nil || used.sent || used.received || ctx.Err() != nil || isTimeout(err) {
			return res, err
		}
		// It was closed just now, before anything of the request was sent. The other idle
		// ones may have been closed, too.
		t.closeIdle()
		break
	}
	conn, err := t.dial(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	return t.sendOver(newUpstreamConn(conn), time.Now(), out, target, host)
}

// sendOver sends a request over c, which is closed if the request is cancelled; see begin.
func (t *directTransport) sendOver(c *upstreamConn, now time.Time, out *outgoing, target, host string) (*http.Response, error) {
	ctx := out.in.Context()
	c.begin(ctx, now, t.headTimeout)
	res, err := c.roundTrip(out, target, host)
	if err != nil {
		c.end()
		_ = c.Close()
		if c.sent {
			out.x.maybeSent.Store(true)
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	b := &out.directBody
	b.conn, b.transport, b.ctx, b.closeAfter = c, t, ctx, res.Close
	if res.Body == http.NoBody {
		b.end(io.EOF)
		return res, nil
	}
	if res.Body != b {
		b.body, res.Body = res.Body, b
	}
	if res.ContentLength < 0 || int64(c.in.Buffered()) < res.ContentLength {
		c.beginBody()
	}
	return res, nil
}

// takeIdle returns the most recently used idle connection, or nil.
func (t *directTransport) takeIdle() *upstreamConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.discardIdle = false
	last := len(t.idle) - 1
	if last < 0 {
		return nil
	}
	c := t.idle[last]
	t.idle[last] = nil
	t.idle = t.idle[:last]
	return c
}

// putIdle makes a connection idle.
func (t *directTransport) putIdle(c *upstreamConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.discardIdle || len(t.idle) >= t.maxIdle {
		_ = c.Close()
		return
	}
	c.idleSince = time.Now()
	t.idle = append(t.idle, c)
	if len(t.idle) == 1 && t.idleTimeout > 0 {
		t.scheduleExpiry(t.idleTimeout)
	}
}

// tooOld reports whether c was idle for too long by the wall clock, which goes on while a
// machine is suspended; timers do not.
func (t *directTransport) tooOld(c *upstreamConn, now time.Time) bool {
	return t.idleTimeout > 0 && now.Sub(c.idleSince.Round(0)) > t.idleTimeout
}

func (t *directTransport) scheduleExpiry(d time.Duration) {
	if t.expiry == nil {
		t.expiry = time.AfterFunc(d, t.expire)
	} else {
		t.expiry.Reset(d)
	}
}

// expire closes connections that were idle for too long. The timer runs while there are
// idle connections.
func (t *directTransport) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, old := time.Now(), 0
	for old < len(t.idle) && now.Sub(t.idle[old].idleSince) >= t.idleTimeout {
		_ = t.idle[old].Close()
		old++
	}
	t.idle = append(t.idle[:0:0], t.idle[old:]...)
	if len(t.idle) > 0 {
		t.scheduleExpiry(t.idleTimeout - now.Sub(t.idle[0].idleSince))
	}
}

// CloseIdleConnections behaves like that of http.Transport: a connection that becomes idle
// before the next request is closed, too.
func (t *directTransport) CloseIdleConnections() {
	t.mu.Lock()
	t.discardIdle = true
	t.mu.Unlock()
	t.closeIdle()
}

// closeIdle closes the idle connections.
func (t *directTransport) closeIdle() {
	t.mu.Lock()
	idle := t.idle
	t.idle = nil
	if t.expiry != nil {
		t.expiry.Stop()
	}
	t.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}
