package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is an open connection of a client, counted until it is closed. A write fails when it
// makes no progress for the time that a client may stall, whatever deadlines net/http and
// TLS set or clear: this holds for handshakes, HTTP/1, HTTP/2 and tunnels alike.
type Conn struct {
	net.Conn
	group   *Group
	surplus bool
	active  atomic.Bool
	out     deadline
	wrote   atomic.Int64 // time of the last progress of a write, since epoch
	closed  sync.Once
}

// epoch is the origin of times that are kept in an atomic word, on the monotonic clock.
var epoch = time.Now()

func newConn(inner net.Conn, g *Group) *Conn {
	c := &Conn{Conn: inner, group: g}
	c.out.set = inner.SetWriteDeadline
	if stall := g.o.Limits.Stall; stall > 0 {
		setUserTimeout(inner, stall)
	}
	return c
}

// ConnOf returns the Conn below c, through TLS; nil if there is none.
func ConnOf(c net.Conn) *Conn {
	for c != nil {
		switch t := c.(type) {
		case *Conn:
			return t
		case interface{ NetConn() net.Conn }:
			c = t.NetConn()
		default:
			return nil
		}
	}
	return nil
}

// Surplus reports whether the connection is above the limit: its client should be told, and
// the connection closed.
func (c *Conn) Surplus() bool { return c.surplus }

// SetActive marks the connection as in use, by a request or its response, or as idle. A new
// one is idle.
func (c *Conn) SetActive(active bool) {
	if c.active.Swap(active) == active {
		return
	}
	if active {
		c.group.active.Add(1)
	} else {
		c.group.active.Add(-1)
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.closed.Do(func() { c.group.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite closes the write side: net/http does so if the client may still be sending.
func (c *Conn) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite closes the write side of a connection, or all of it if it cannot do that.
func CloseWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.out.request(t) }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.Conn.SetReadDeadline(t), c.out.request(t))
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (n int, err error) {
	stall := c.group.o.Limits.Stall
	since := time.Now()
	for now := since; ; {
		var latest time.Time
		if stall > 0 {
			latest = since.Add(stall)
		}
		if !c.out.begin(now, latest) {
			return n, os.ErrDeadlineExceeded
		}
		m, err := c.Conn.Write(p[n:])
		c.out.end()
		n += m
		if now = time.Now(); m > 0 {
			c.wrote.Store(int64(now.Sub(epoch)))
			since = now
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// silence returns how long ago the last write made progress, or start was, whichever is later.
func (c *Conn) silence(start, now time.Time) time.Duration {
	if wrote := epoch.Add(time.Duration(c.wrote.Load())); wrote.After(start) {
		start = wrote
	}
	return now.Sub(start)
}
