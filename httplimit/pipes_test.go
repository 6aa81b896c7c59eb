package httplimit

import (
	"context"
	"net"
	"net/http"
	"testing"
)

// pipes is a listener whose connections are pipes, which virtual time works with.
type pipes struct {
	incoming chan net.Conn
	closed   chan struct{}
}

// servePipes serves until a test in a bubble is over. The client's requests come from 127.0.0.1, as those on
// connections that are dialled do.
func servePipes(t *testing.T, h http.Handler) (p *pipes, client *http.Client) {
	p = &pipes{make(chan net.Conn), make(chan struct{})}
	srv, transport := &http.Server{Handler: h}, &http.Transport{DialContext: p.dial}
	served := make(chan error)
	go func() { served <- srv.Serve(p) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		<-served
	})
	return p, &http.Client{Transport: transport}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.incoming <- pipe{there}:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.incoming:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return loopback }

// pipe is one that comes from an address.
type pipe struct{ net.Conn }

func (pipe) RemoteAddr() net.Addr { return loopback }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
