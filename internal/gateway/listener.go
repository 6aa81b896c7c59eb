package gateway

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// listener counts connections and has the requests on them followed.
type listener struct {
	net.Listener
	open  *atomic.Int64
	limit int64 // 0 means any
	stall time.Duration
}

// Accept hands out a connection above the limit as well, marked, so that its
// client is told; but at twice the limit nobody is told anything.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := newConn(inner, l.open, l.stall)
		n := l.open.Add(1)
		if l.limit > 0 && n > 2*l.limit {
			c.Close()
			continue
		}
		c.surplus = l.limit > 0 && n > l.limit
		return c, nil
	}
}

// watching is a listener of connections that speak HTTP/1.
type watching struct {
	*listener
	limits *Limits
}

func (w watching) Accept() (net.Conn, error) {
	c, err := w.listener.Accept()
	if err != nil {
		return nil, err
	}
	return newWatched(c, w.limits), nil
}

// line is what handlers know of the connection that a request came on.
type line struct {
	conn    *watchedConn // nil: not HTTP/1
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
	switch t := c.(type) {
	case *watchedTLS:
		l.conn = &t.watchedConn
	case *watchedConn:
		l.conn = t
	}
	if raw := rawConn(c); raw != nil {
		l.surplus = raw.surplus
	}
	return context.WithValue(ctx, lineKey{}, l)
}

// inspect says what is wrong with the lines of the request that is served now.
func (l *line) inspect() *problem {
	if l == nil || l.conn == nil {
		return nil
	}
	if l.served++; l.conn.framing.bad.Load() != l.served {
		return nil
	}
	p := badRequest("The request has two lengths: Content-Length and Transfer-Encoding.")
	if l.conn.framing.folded.Load() {
		p = badRequest("The request has a header that is folded into the next line.")
	}
	p.hurt = true
	return p
}

func (l *line) isSurplus() bool { return l != nil && l.surplus }

// watched returns the connection of a request over HTTP/1; nil if it is not ours to watch.
func (l *line) watched() *watchedConn {
	if l == nil {
		return nil
	}
	return l.conn
}
