package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
)

// handshakes is a listener whose connections have done their TLS handshake when
// they are accepted: only then it is known which of them speak HTTP/1.
type handshakes struct {
	net.Listener
	config  *tls.Config
	limits  *Limits
	log     *slog.Logger
	ctx     context.Context // ends when no connection is left to hand out
	cancel  context.CancelFunc
	ready   chan net.Conn
	failed  chan error // the listener's
	pending sync.WaitGroup
}

// newHandshakes gives up handshakes when ctx ends.
func newHandshakes(ctx context.Context, l net.Listener, config *tls.Config, limits *Limits, log *slog.Logger) *handshakes {
	config = config.Clone()
	for _, proto := range []string{"h2", "http/1.1"} {
		if !slices.Contains(config.NextProtos, proto) {
			config.NextProtos = append(slices.Clip(config.NextProtos), proto)
		}
	}
	h := &handshakes{Listener: l, config: config, limits: limits, log: log, ready: make(chan net.Conn), failed: make(chan error)}
	h.ctx, h.cancel = context.WithCancel(ctx)
	go h.run()
	return h
}

// run ends with the listener, and when the handshakes are done that were under way
// then: somebody waits for an answer.
func (h *handshakes) run() {
	defer h.cancel()
	defer h.pending.Wait()
	for {
		conn, err := h.Listener.Accept()
		if err == nil {
			h.pending.Go(func() { h.shake(conn) })
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case h.failed <- err:
		case <-h.ctx.Done():
			return
		}
	}
}

// shake hands the connection over, or closes it.
func (h *handshakes) shake(conn net.Conn) {
	secure := tls.Server(conn, h.config)
	ctx, cancel := context.WithTimeout(h.ctx, h.limits.ReadHeader)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		sayNoTLS(err)
		h.log.Debug("TLS handshake failed", slog.String("client", conn.RemoteAddr().String()), slog.String("error", err.Error()))
		conn.Close()
		return
	}
	var made net.Conn = secure
	if state := secure.ConnectionState(); state.NegotiatedProtocol != "h2" {
		made = newWatchedTLS(secure, state, h.limits)
	}
	select {
	case h.ready <- made:
	case <-h.ctx.Done():
		made.Close()
	}
}

// sayNoTLS answers those who came with plain HTTP.
func sayNoTLS(err error) {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && slices.Contains(verbs, string(plain.RecordHeader[:3])) {
		_, _ = io.WriteString(plain.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nThis port speaks HTTPS.\n")
	}
}

// verbs is how plain HTTP begins.
var verbs = []string{"GET", "HEA", "POS", "PUT", "PAT", "DEL", "OPT"}

// Accept implements net.Listener. The server, which knows what to do about errors
// that pass, asks again after them.
func (h *handshakes) Accept() (net.Conn, error) {
	select {
	case conn := <-h.ready:
		return conn, nil
	case err := <-h.failed:
		return nil, err
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}
