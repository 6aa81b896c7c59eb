package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/store/redis/internal/rediswire"
)

// dialer makes connections whose replies are checked, and remembers the last error of the
// server: callers have a short deadline, and see only that it passed.
type dialer struct {
	name      string // of the shard; "" if there is no other
	timeout   time.Duration
	exchanges exchanges
	lastError atomic.Pointer[error] // since a connection last worked; nil means none
	// password is what the file of Config.PasswordFile last had.
	password atomic.Pointer[string]
}

// dial implements rueidis.ClientOption.DialCtxFn.
func (d *dialer) dial(ctx context.Context, addr string, by *net.Dialer, config *tls.Config) (net.Conn, error) {
	conn, err := d.connect(ctx, addr, by, config)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			d.report(addr, err)
		}
		return nil, dialError{err}
	}
	if by.Resolver == sentinelResolver {
		conn = sentinelConn{conn}
	} else {
		conn = d.exchanges.watch(addr, conn)
	}
	return rediswire.Wrap(conn, func(err error) { d.report(addr, err) }), nil
}

func (d *dialer) connect(ctx context.Context, addr string, by *net.Dialer, config *tls.Config) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := by.DialContext(ctx, network, addr)
	if err != nil || config == nil {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeError(err)
	}
	return secure, nil
}

// handshakeError explains a failed TLS handshake. A server that does not speak TLS
// takes it for an unfinished command, and waits for the rest of it.
func handshakeError(err error) error {
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &header):
		return fmt.Errorf("TLS handshake: the server does not speak TLS: use redis://, or its port for TLS: %w", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("TLS handshake: the server accepts connections and does not answer in TLS: if it does not speak TLS, use redis://, or its port for TLS: %w", err)
	}
	return fmt.Errorf("TLS handshake: %w", err)
}

// report notes what is wrong with a server; nil means nothing.
func (d *dialer) report(addr string, err error) {
	if err == nil {
		d.lastError.Store(nil)
		return
	}
	if d.name != "" {
		addr = d.name + " (" + addr + ")"
	}
	err = fmt.Errorf("%s: %w", addr, withAdvice(err))
	d.lastError.Store(&err)
}

// Trouble returns why the server cannot be used, as far as connections show: it refuses
// them, does not speak TLS or Redis' protocol, or does not let the user in. It is nil once
// a connection works. Of several shards, it is about the first that has trouble.
func (s fleetStore) Trouble() error {
	for _, e := range s.endpoints[:max(s.shards, 1)] {
		if err := e.trouble(); err != nil {
			return err
		}
	}
	return nil
}
