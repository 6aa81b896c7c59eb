package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// listener counts connections and has the requests on them followed.
type listener struct {
	net.Listener
	open  *atomic.Int64
	limit int64 // 0: any
}

// Accept hands out a connection above the limit as well, marked, so that its
// client is told; but at twice the limit nobody is told anything.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, open: l.open}
		n := l.open.Add(1)
		if l.limit > 0 && n > 2*l.limit {
			c.Close()
			continue
		}
		c.surplus = l.limit > 0 && n > l.limit
		return c, nil
	}
}

// conn is an open connection, counted until it is closed.
type conn struct {
	net.Conn
	open    *atomic.Int64
	surplus bool
	closed  sync.Once
}

func (c *conn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite is what net/http ends a connection with whose client may still send.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

// watchedConn is a connection that speaks HTTP/1: its requests are followed.
type watchedConn struct {
	net.Conn
	framing framing
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.framing.see(p[:n])
	return n, err
}

func (c *watchedConn) CloseWrite() error { return closeWrite(c.Conn) }

// unwatch is called when the connection becomes a tunnel.
func (c *watchedConn) unwatch() { c.framing.ignored.Store(true) }

// watchedTLS tells net/http how it is encrypted.
type watchedTLS struct {
	watchedConn
	state tls.ConnectionState
}

func (c *watchedTLS) ConnectionState() tls.ConnectionState { return c.state }

// line is what handlers know of the connection that a request came on.
type line struct {
	framing *framing // nil: not HTTP/1
	surplus bool
	served  int64 // requests, this one included; there is one at a time
}

type lineKey struct{}

// lineOf is nil for a connection that did not come through a listener of ours.
func lineOf(ctx context.Context) *line {
	l, _ := ctx.Value(lineKey{}).(*line)
	return l
}

// withLine is the ConnContext of the server.
func withLine(ctx context.Context, c net.Conn) context.Context {
	l := new(line)
	for c != nil {
		switch t := c.(type) {
		case *watchedTLS:
			l.framing, c = &t.framing, t.Conn
		case *watchedConn:
			l.framing, c = &t.framing, t.Conn
		case *tls.Conn:
			c = t.NetConn()
		case *conn:
			l.surplus, c = t.surplus, nil
		default:
			c = nil
		}
	}
	return context.WithValue(ctx, lineKey{}, l)
}

// twoLengths reports whether the request that is served now has them.
func (l *line) twoLengths() bool {
	if l == nil || l.framing == nil {
		return false
	}
	l.served++
	return l.framing.bad.Load() == l.served
}

func (l *line) isSurplus() bool { return l != nil && l.surplus }
