package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// http1Conn is a connection that speaks HTTP/1. It follows the requests on it, so it knows
// when the client has a body to finish, and bounds the time for that, whoever reads and
// whatever deadline net/http set: while a handler reads, after an early response, and while
// net/http drains a body that no handler read.
type http1Conn struct {
	net.Conn
	framing framing
	limits  *HTTPLimits
	in      deadline
	counted *Conn    // nil in tests
	watcher *watcher // nil if net/http alone watches the client
	skips   bool     // net/http does not watch the client

	tunnel atomic.Bool // hijacked: no HTTP any more
	duplex atomic.Bool // the request is answered while its body is sent

	mu           sync.Mutex
	bodyDeadline time.Time // under mu: of a body that is no longer wanted; zero means none
}

func newHTTP1Conn(inner net.Conn, l *HTTPLimits, by *watcher) *http1Conn {
	c := new(http1Conn)
	c.init(inner, l, by)
	c.skips = c.watcher != nil
	return c
}

func (c *http1Conn) init(inner net.Conn, l *HTTPLimits, by *watcher) {
	c.Conn, c.limits, c.counted = inner, l, ConnOf(inner)
	if c.counted != nil && canSeeGone {
		if _, ok := c.counted.Conn.(syscall.Conn); ok {
			c.watcher = by
		}
	}
	c.in.set = inner.SetReadDeadline
}

// NetConn returns the connection below.
func (c *http1Conn) NetConn() net.Conn { return c.Conn }

func (c *http1Conn) SetReadDeadline(t time.Time) error { return c.in.request(t) }

func (c *http1Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.request(t), c.Conn.SetWriteDeadline(t))
}

func (c *http1Conn) CloseWrite() error { return CloseWrite(c.Conn) }

func (c *http1Conn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.isWatch() {
		return 0, nil // which ends it without an error
	}
	start := time.Now()
	for now := start; c.in.begin(now, c.readDeadline(start, now)); now = time.Now() {
		n, err := c.Conn.Read(p)
		c.in.end()
		c.framing.observe(p[:n])
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return 0, os.ErrDeadlineExceeded
}

// isWatch reports whether a read of one byte is one by which net/http finds out that the client
// leaves, and which is skipped; see Watch. It is if a request is being served and nothing of it is
// left to read. Over TLS such reads are not skipped: a client may end TLS, and not close the
// connection.
func (c *http1Conn) isWatch() bool {
	return c.skips && c.counted.active.Load() && !c.framing.inBody()
}

// readDeadline returns when a read that began at start has to return something; zero if the
// client has no body to finish, or may be silent.
func (c *http1Conn) readDeadline(start, now time.Time) time.Time {
	switch {
	case c.tunnel.Load():
		return c.silenceDeadline(start, now)
	case !c.framing.inBody():
		c.endRequest()
		return time.Time{}
	}
	c.mu.Lock()
	unwanted := c.bodyDeadline
	c.mu.Unlock()
	var latest time.Time
	if c.duplex.Load() && c.framing.betweenChunks() {
		latest = c.silenceDeadline(start, now)
	} else if c.limits.Stall > 0 {
		latest = start.Add(c.limits.Stall)
	}
	return earlier(latest, unwanted)
}

// silenceDeadline returns the deadline where both sides may talk: what either sends counts.
func (c *http1Conn) silenceDeadline(start, now time.Time) time.Time {
	if c.limits.Tunnel <= 0 {
		return time.Time{}
	}
	silence := now.Sub(start)
	if c.counted != nil {
		silence = c.counted.silence(start, now)
	}
	return now.Add(c.limits.Tunnel - silence)
}

// endRequest resets what applied to a request that has been read completely.
func (c *http1Conn) endRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodyDeadline = time.Time{}
	c.duplex.Store(false)
}

// finishBodyWithin bounds the time for the rest of a body that is no longer wanted. It
// takes effect at once for a read that waits.
func (c *http1Conn) finishBodyWithin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := time.Now().Add(d); c.bodyDeadline.IsZero() || t.Before(c.bodyDeadline) {
		c.bodyDeadline = t
		c.in.enforce(t)
	}
}

// becomeTunnel is called when the connection is hijacked.
func (c *http1Conn) becomeTunnel() {
	c.framing.ignored.Store(true)
	c.tunnel.Store(true)
}

// http1TLSConn tells net/http how it is encrypted.
type http1TLSConn struct {
	http1Conn
	state tls.ConnectionState
}

func newHTTP1TLSConn(inner *tls.Conn, state tls.ConnectionState, l *HTTPLimits, by *watcher) *http1TLSConn {
	c := &http1TLSConn{state: state}
	c.init(inner, l, by)
	return c
}

func (c *http1TLSConn) ConnectionState() tls.ConnectionState { return c.state }

// connInfo is what is known about the connection of a request.
type connInfo struct {
	http1   *http1Conn // nil for HTTP/2
	surplus bool
	served  int64 // requests, over HTTP/1, where there is one at a time
}

type connInfoKey struct{}

// withConnInfo is the ConnContext of a Server.
func withConnInfo(ctx context.Context, c net.Conn) context.Context {
	info := new(connInfo)
	switch t := c.(type) {
	case *http1TLSConn:
		info.http1 = &t.http1Conn
	case *http1Conn:
		info.http1 = t
	}
	if counted := ConnOf(c); counted != nil {
		info.surplus = counted.surplus
	}
	return context.WithValue(ctx, connInfoKey{}, info)
}

// beginRequest counts a request, and returns why it must be refused; "" if it need not be.
func (i *connInfo) beginRequest() string {
	if i == nil || i.http1 == nil {
		return ""
	}
	i.served++
	switch f := &i.http1.framing; {
	case f.bad.Load() != i.served:
		return ""
	case f.folded.Load():
		return "The request has a header that is folded into the next line."
	}
	return "The request has two lengths: Content-Length and Transfer-Encoding."
}
