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

// boundWrites returns a dialFunc for an http.Transport, which itself would wait for ever for an
// upstream that takes nothing of a body: here a write fails after that time; 0 means never.
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

// writeBoundConn is a connection whose writes have to make progress within a limit, unless whoever
// writes has set a deadline, as TLS does.
type writeBoundConn struct {
	net.Conn
	limit    time.Duration
	opened   time.Time
	deadline atomic.Int64 // of writes, since opened; 0 means none of ours
	theirs   atomic.Bool  // the deadline is not ours
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

// setDeadline sets a deadline for a write. That is expensive, so one that is a little late stays.
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

func (c *writeBoundConn) noteDeadline(t time.Time) {
	c.theirs.Store(!t.IsZero())
	c.deadline.Store(0)
}

// CloseWrite closes the write side, for tunnels.
func (c *writeBoundConn) CloseWrite() error { return listen.CloseWrite(c.Conn) }
