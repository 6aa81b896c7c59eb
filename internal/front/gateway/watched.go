package gateway

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watchedConn is a connection that speaks HTTP/1. It follows the requests on it, so it
// knows when the client owes the rest of a body, and holds it to a time for that, whoever
// reads and whatever deadline net/http set: while a handler reads, after an early answer,
// and when net/http drains what no handler wanted.
type watchedConn struct {
	net.Conn
	framing framing
	limits  *Limits
	in      deadline
	raw     *conn // nil in tests

	tunnel    atomic.Bool // no HTTP any more
	conversed atomic.Bool // the upstream answers while the body is still being sent

	mu     sync.Mutex
	linger time.Time // under mu: when the rest of a body has to be there; zero means none is unwanted
}

func newWatched(inner net.Conn, l *Limits) *watchedConn {
	c := new(watchedConn)
	c.watch(inner, l)
	return c
}

func (c *watchedConn) watch(inner net.Conn, l *Limits) {
	c.Conn, c.limits, c.raw = inner, l, rawConn(inner)
	c.in.set = inner.SetReadDeadline
}

func (c *watchedConn) SetReadDeadline(t time.Time) error { return c.in.setAbove(t) }

func (c *watchedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.in.setAbove(t), c.Conn.SetWriteDeadline(t))
}

func (c *watchedConn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *watchedConn) Read(p []byte) (int, error) {
	start := time.Now()
	for now := start; ; now = time.Now() {
		c.in.arm(now, c.latest(start, now))
		n, err := c.Conn.Read(p)
		c.framing.see(p[:n])
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		now = time.Now()
		if latest := c.latest(start, now); c.in.passed(now) || !latest.IsZero() && !now.Before(latest) {
			return n, err
		}
	}
}

// latest returns when a read that began at start has to have something; zero where the
// client owes nothing, or where it may be silent.
func (c *watchedConn) latest(start, now time.Time) time.Time {
	switch {
	case c.tunnel.Load():
		return c.unlessSilent(start, now)
	case !c.framing.owes():
		c.settle()
		return time.Time{}
	}
	c.mu.Lock()
	linger := c.linger
	c.mu.Unlock()
	var latest time.Time
	if c.conversed.Load() && c.framing.pauses() {
		latest = c.unlessSilent(start, now)
	} else if c.limits.Stall > 0 {
		latest = start.Add(c.limits.Stall)
	}
	return earlier(latest, linger)
}

// unlessSilent is latest where both sides talk: what either says counts.
func (c *watchedConn) unlessSilent(start, now time.Time) time.Time {
	if c.limits.Tunnel <= 0 {
		return time.Time{}
	}
	silence := now.Sub(start)
	if c.raw != nil {
		silence = c.raw.silence(start, now)
	}
	return now.Add(c.limits.Tunnel - silence)
}

// settle forgets what held for a request that is whole.
func (c *watchedConn) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger = time.Time{}
	c.conversed.Store(false)
}

// hurry has the rest of a body, which nobody wants any more, be there within d. It takes
// effect at once for a read that waits.
func (c *watchedConn) hurry(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := time.Now().Add(d); c.linger.IsZero() || t.Before(c.linger) {
		c.linger = t
		c.in.setOwn(t)
	}
}

// converse lets the client pause between two chunks of its body.
func (c *watchedConn) converse() { c.conversed.Store(true) }

// unwatch is called when the connection becomes a tunnel.
func (c *watchedConn) unwatch() {
	c.framing.ignored.Store(true)
	c.tunnel.Store(true)
}

// watchedTLS tells net/http how it is encrypted.
type watchedTLS struct {
	watchedConn
	state tls.ConnectionState
}

func newWatchedTLS(inner *tls.Conn, state tls.ConnectionState, l *Limits) *watchedTLS {
	c := &watchedTLS{state: state}
	c.watch(inner, l)
	return c
}

func (c *watchedTLS) ConnectionState() tls.ConnectionState { return c.state }
