package gateway

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// conn is an open connection of a client, counted until it is closed. A write on it
// fails when nothing of it moves on for the time that a client may stand still, whatever
// deadlines net/http and TLS set or clear: this holds for handshakes, HTTP/1, HTTP/2 and
// tunnels alike.
type conn struct {
	net.Conn
	open    *atomic.Int64
	surplus bool
	since   time.Time     // when it was accepted
	stall   time.Duration // that a write may stand still; 0 means any
	out     deadline
	wrote   atomic.Int64 // when something was last written, since epoch
	state   atomic.Int64 // http.ConnState
	closed  sync.Once
}

// epoch is what times are counted from that have to fit a word, by a clock that nobody sets.
var epoch = time.Now()

func newConn(inner net.Conn, open *atomic.Int64, stall time.Duration) *conn {
	c := &conn{Conn: inner, open: open, since: time.Now(), stall: stall}
	c.out.set = inner.SetWriteDeadline
	if stall > 0 {
		setUserTimeout(inner, stall)
	}
	return c
}

func (c *conn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite is what net/http ends a connection with whose client may still send.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func (c *conn) SetWriteDeadline(t time.Time) error { return c.out.setAbove(t) }

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.Conn.SetReadDeadline(t), c.out.setAbove(t))
}

func (c *conn) Write(p []byte) (n int, err error) {
	for since := time.Now(); ; {
		if c.stall > 0 {
			c.out.arm(since, since.Add(c.stall))
		}
		m, err := c.Conn.Write(p[n:])
		n += m
		now := time.Now()
		if m > 0 {
			c.wrote.Store(int64(now.Sub(epoch)))
			since = now
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || c.out.passed(now) || now.Sub(since) >= c.stall {
			return n, err
		}
		c.out.arm(now, since.Add(c.stall)) // it was armed for a write before this one
	}
}

// silence returns for how long nothing was written to the client, counted from start
// where nothing was written since.
func (c *conn) silence(start, now time.Time) time.Duration {
	if wrote := epoch.Add(time.Duration(c.wrote.Load())); wrote.After(start) {
		start = wrote
	}
	return now.Sub(start)
}

// rawConn returns the connection of ours below c; nil if there is none.
func rawConn(c net.Conn) *conn {
	for c != nil {
		switch t := c.(type) {
		case *conn:
			return t
		case *watchedTLS:
			c = t.Conn
		case *watchedConn:
			c = t.Conn
		case interface{ NetConn() net.Conn }: // TLS
			c = t.NetConn()
		default:
			return nil
		}
	}
	return nil
}

// track is the ConnState of the server.
func (g *Gateway) track(c net.Conn, state http.ConnState) {
	raw := rawConn(c)
	if raw == nil {
		return
	}
	was := http.ConnState(raw.state.Swap(int64(state)))
	if is := state == http.StateActive; is != (was == http.StateActive) {
		if is {
			g.active.Add(1)
		} else {
			g.active.Add(-1)
		}
	}
}
