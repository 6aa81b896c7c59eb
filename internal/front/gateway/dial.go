package gateway

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/front/listen"
)

// dialFunc opens a connection, as the DialContext of an http.Transport.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newDial returns how connections to upstreams are opened; reclaim frees idle ones when no more
// can be opened.
func newDial(o *Options, reclaim func()) dialFunc {
	dialer := &net.Dialer{Timeout: o.Transport.Connect, KeepAlive: 15 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if isLocalFailure(err) {
			reclaim()
			conn, err = dialer.DialContext(ctx, network, address)
		}
		if err != nil {
			return nil, &connectError{err}
		}
		return conn, nil
	}
}

// connectError means that there was no connection, so nothing was sent.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// boundWrites returns a dialFunc for an http.Transport. The transport itself would wait forever for
// an upstream that accepts no more of a body: here a write without progress fails after limit; 0
// means never.
func boundWrites(dial dialFunc, limit time.Duration) dialFunc {
	if limit <= 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &writeBoundConn{Conn: conn, limit: limit, opened: time.Now()}, nil
	}
}

// writeBoundConn is a connection whose writes have to make progress within a limit, unless the
// writer has set its own deadline, as TLS does.
type writeBoundConn struct {
	net.Conn
	limit    time.Duration
	opened   time.Time
	deadline atomic.Int64 // of writes, since opened; 0 means that we set none
	theirs   atomic.Bool  // the writer has set its own deadline
}

// Write implements net.Conn.
func (c *writeBoundConn) Write(p []byte) (n int, err error) {
	for {
		c.setDeadline()
		m, err := c.Conn.Write(p[n:])
		n += m
		if m == 0 || c.theirs.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// setDeadline sets a deadline for a write. That is expensive, so a slightly earlier one is kept.
func (c *writeBoundConn) setDeadline() {
	if age := time.Since(c.opened); !c.theirs.Load() && time.Duration(c.deadline.Load()) < age+c.limit {
		latest := age + c.limit + c.limit/8
		c.deadline.Store(int64(latest))
		_ = c.Conn.SetWriteDeadline(c.opened.Add(latest)) // a closed connection fails the write
	}
}

// SetWriteDeadline implements net.Conn.
func (c *writeBoundConn) SetWriteDeadline(t time.Time) error {
	c.noteDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *writeBoundConn) SetDeadline(t time.Time) error {
	c.noteDeadline(t)
	return c.Conn.SetDeadline(t)
}

// noteDeadline records that the writer has set a deadline of its own, or cleared it.
func (c *writeBoundConn) noteDeadline(t time.Time) {
	c.theirs.Store(!t.IsZero())
	c.deadline.Store(0)
}

// CloseWrite closes the write side, for tunnels.
func (c *writeBoundConn) CloseWrite() error { return listen.CloseWrite(c.Conn) }
