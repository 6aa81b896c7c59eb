package listen

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// listener limits the connections that all listeners of its group have open together. It retries
// after every error but one that ends the inner listener: an accept loop that gives up when memory
// or files are short would be an attacker's success.
type listener struct {
	net.Listener
	group  *Group
	closed chan struct{}
	once   sync.Once
}

// Accept returns up to Limits.Surplus connections above the limit as well, marked as surplus, so
// that their clients can be told. Those beyond are closed without a word.
func (l *listener) Accept() (net.Conn, error) {
	limits := &l.group.o.Limits
	for {
		inner, err := l.accept()
		if err != nil {
			return nil, err
		}
		c := newConn(inner, l.group)
		n := l.group.open.Add(1)
		if limits.Connections > 0 && n > int64(limits.Connections)+int64(limits.Surplus) {
			c.Close()
			continue
		}
		c.surplus = limits.Connections > 0 && n > int64(limits.Connections)
		return c, nil
	}
}

// How long accepting pauses after an error: at first, and at most.
const (
	firstBackoff = 5 * time.Millisecond
	maxBackoff   = time.Second
)

// accept returns the next connection of the inner listener; errors are those that end it.
func (l *listener) accept() (net.Conn, error) {
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		c, err := l.Listener.Accept()
		if err == nil || isFinal(err) {
			return c, err
		}
		if l.group.o.Reclaim != nil {
			l.group.o.Reclaim()
		}
		l.group.o.Log.Warn("a connection could not be accepted; trying again", slog.String("error", err.Error()), slog.Duration("in", backoff))
		select {
		case <-time.After(backoff):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// isFinal reports whether a listener that returns err will never accept anything again.
func isFinal(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSOCK)
}

// Close may be called more than once, as net/http does.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
	})
	return err
}
