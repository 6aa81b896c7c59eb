package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipes is a network in memory, on which time can be virtual. While it is down, nobody can
// connect, and connections break.
type pipes struct {
	incoming chan net.Conn
	closed   chan struct{}

	mu   sync.Mutex
	down bool
	open []net.Conn
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
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: io.ErrClosedPipe}
	}
	here, there := net.Pipe()
	p.mu.Lock()
	p.open = append(p.open, there)
	p.mu.Unlock()
	select {
	case p.incoming <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// setDown takes the network down, or up again.
func (p *pipes) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	if down {
		for _, c := range p.open {
			_ = c.Close()
		}
		p.open = nil
	}
}

// serve serves h on a network of its own, and returns it with a transport to it. Call it in a
// synctest bubble.
func serve(t *testing.T, h http.HandlerFunc) (*pipes, *http.Transport) {
	t.Helper()
	network := &pipes{incoming: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(network)
	}()
	tr := &http.Transport{DialContext: network.dial, MaxIdleConnsPerHost: 1 << 10}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = server.Close()
		<-done
	})
	return network, tr
}

// answer is what a client got in the end.
type answer struct {
	status int
	body   string
	err    error
	took   time.Duration
}

// do sends one request and reads the answer.
func do(ctx context.Context, rt http.RoundTripper, method, body string) answer {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://api.example.com/things", r)
	if err != nil {
		return answer{err: err}
	}
	began := time.Now()
	res, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return answer{err: err, took: time.Since(began)}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(text), err, time.Since(began)}
}

// get is do of a GET.
func get(rt http.RoundTripper) answer { return do(context.Background(), rt, http.MethodGet, "") }
