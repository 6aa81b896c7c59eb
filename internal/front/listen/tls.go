package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
)

// tlsListener accepts connections after their TLS handshake, so that a slow handshake
// blocks nobody, and the negotiated protocol is known.
type tlsListener struct {
	*listener
	config  *tls.Config
	ctx     context.Context // ends when no connection is left to accept
	cancel  context.CancelFunc
	ready   chan net.Conn
	failed  chan error // of the listener
	pending sync.WaitGroup
}

// newTLSListener gives up handshakes when ctx ends.
func newTLSListener(ctx context.Context, l *listener, config *tls.Config) *tlsListener {
	t := &tlsListener{listener: l, config: config, ready: make(chan net.Conn), failed: make(chan error)}
	t.ctx, t.cancel = context.WithCancel(ctx)
	go t.run()
	return t
}

// run ends with the listener, after the handshakes that are in progress then: their clients
// wait for an answer.
func (t *tlsListener) run() {
	defer t.cancel()
	defer t.pending.Wait()
	for {
		conn, err := t.listener.Accept()
		if err == nil {
			t.pending.Go(func() { t.handshake(conn) })
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case t.failed <- err:
		case <-t.ctx.Done():
			return
		}
	}
}

// handshake hands the connection to Accept, or closes it.
func (t *tlsListener) handshake(conn net.Conn) {
	ctx := t.ctx
	if limit := t.group.o.Limits.Handshake; limit > 0 {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = bounded
	}
	secure := tls.Server(conn, t.config)
	if err := secure.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		if answer := t.group.o.NotTLS; answer != nil && errors.As(err, &plain) && plain.Conn != nil {
			answer(plain.Conn, plain.RecordHeader[:])
		}
		t.group.o.Log.Debug("TLS handshake failed", slog.String("client", conn.RemoteAddr().String()), slog.String("error", err.Error()))
		conn.Close()
		return
	}
	select {
	case t.ready <- secure:
	case <-t.ctx.Done():
		secure.Close()
	}
}

// Accept implements net.Listener. Its errors are those of a listener that is broken.
func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case conn := <-t.ready:
		return conn, nil
	case err := <-t.failed:
		return nil, err
	case <-t.ctx.Done():
		return nil, net.ErrClosed
	}
}
