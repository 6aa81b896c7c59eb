package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// listener counts connections. It goes on after every error but its end: an accept loop
// that gives up when memory or files are short would be an attacker's success.
type listener struct {
	net.Listener
	open    *atomic.Int64
	limit   int64 // 0 means any
	stall   time.Duration
	reclaim func() // frees what can be freed
	log     *slog.Logger
	ended   chan struct{} // is closed by Close
	end     sync.Once
}

func (g *Gateway) newListener(l net.Listener) *listener {
	return &listener{
		Listener: l, open: &g.conns, limit: int64(g.o.Limits.Connections), stall: g.o.Limits.Stall,
		reclaim: g.reclaim, log: g.o.Log, ended: make(chan struct{}),
	}
}

// Accept hands out some connections above the limit as well, marked, so that their
// clients are told; above those, nobody is told anything.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.accept()
		if err != nil {
			return nil, err
		}
		c := newConn(inner, l.open, l.stall)
		n := l.open.Add(1)
		if l.limit > 0 && n > l.limit+told(l.limit) {
			c.Close()
			continue
		}
		c.surplus = l.limit > 0 && n > l.limit
		return c, nil
	}
}

// told is how many connections above the limit are told: as many again, but no more than 64
// or an eighth. The default of the limit leaves room for them.
func told(limit int64) int64 { return min(limit, max(64, limit/8)) }

// How long accepting pauses after an error, at first and at most.
const (
	firstRest = 5 * time.Millisecond
	maxRest   = time.Second
)

func (l *listener) accept() (net.Conn, error) {
	for rest := firstRest; ; rest = min(2*rest, maxRest) {
		c, err := l.Listener.Accept()
		if err == nil || isEnd(err) {
			return c, err
		}
		l.reclaim()
		l.log.Warn("a connection could not be accepted; trying again", slog.String("error", err.Error()), slog.Duration("in", rest))
		select {
		case <-time.After(rest):
		case <-l.ended:
			return nil, net.ErrClosed
		}
	}
}

// isEnd reports whether a listener that says so will never accept anything.
func isEnd(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSOCK)
}

// Close may be called again, as net/http does.
func (l *listener) Close() (err error) {
	l.end.Do(func() {
		close(l.ended)
		err = l.Listener.Close()
	})
	return err
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

// connInfo is what handlers know of the connection that a request came on.
type connInfo struct {
	conn    *watchedConn // nil: not HTTP/1
	surplus bool
	served  int64 // requests, this one included; there is one at a time
}

type connInfoKey struct{}

// connInfoOf is nil for a connection that did not come through a listener of ours.
func connInfoOf(ctx context.Context) *connInfo {
	l, _ := ctx.Value(connInfoKey{}).(*connInfo)
	return l
}

// withConnInfo is the ConnContext of the server.
func withConnInfo(ctx context.Context, c net.Conn) context.Context {
	l := new(connInfo)
	switch t := c.(type) {
	case *watchedTLS:
		l.conn = &t.watchedConn
	case *watchedConn:
		l.conn = t
	}
	if raw := rawConn(c); raw != nil {
		l.surplus = raw.surplus
	}
	return context.WithValue(ctx, connInfoKey{}, l)
}

// inspect says what is wrong with the lines of the request that is served now.
func (l *connInfo) inspect() *problem {
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
	p.closeConn = true
	return p
}

func (l *connInfo) isSurplus() bool { return l != nil && l.surplus }

// watched returns the connection of a request over HTTP/1; nil if it is not ours to watch.
func (l *connInfo) watched() *watchedConn {
	if l == nil {
		return nil
	}
	return l.conn
}
