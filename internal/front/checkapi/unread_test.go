package checkapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/front/listen"
)

// onePipe is a listener with one connection, a pipe, which virtual time works with.
type onePipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *onePipe) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *onePipe) Close() error   { close(l.closed); return nil }
func (l *onePipe) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }

// overPipe serves h with the limits of serve to one client.
func overPipe(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	l := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
	l.conns <- theirs
	s := listen.NewServer(listen.ServerOptions{Handler: h})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l, nil) }()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ours
}

// A proxy that announces a body and does not send it, or not yet, is answered within the
// deadline; and one that sends it goes on asking on the same connection.
func TestForwardAuthWaitsForNoBody(t *testing.T) {
	const deadline = 250 * time.Millisecond
	asks := func(length, uri string) string {
		return "POST " + forwardAuth + " HTTP/1.1\r\nHost: a\r\n" + length + "X-Tidegate-Token: " + secret + "\r\nX-Original-Method: POST\r\nX-Forwarded-For: 192.0.2.1\r\nX-Original-URI: " + uri + "\r\n\r\n"
	}
	for _, length := range []string{"Content-Length: 100\r\n", "Content-Length: 100000000\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 100\r\nExpect: 100-continue\r\n"} {
		for uri, want := range map[string]int{"/other": 204, "/private/x": 403, "/a/../b": 400, "": 400} {
			for _, sent := range []string{"", "5"} {
				synctest.Test(t, func(t *testing.T) {
					c := overPipe(t, newServer(t, site, func(o *Options) { o.Deadline, o.Token = deadline, func() string { return secret } }))
					start := time.Now()
					go func() { _, _ = io.WriteString(c, asks(length, uri)+sent) }()
					in := bufio.NewReader(c)
					res, err := http.ReadResponse(in, nil)
					for err == nil && res.StatusCode == http.StatusContinue {
						res, err = http.ReadResponse(in, nil)
					}
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(start); took > deadline || res.StatusCode != want || !res.Close {
						t.Errorf("%q, %q of the body sent, %q: %d after %s, closes: %t", length, sent, uri, res.StatusCode, took, res.Close)
					}
				})
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := overPipe(t, newServer(t, site, func(o *Options) { o.Deadline, o.Token = deadline, func() string { return secret } }))
		in := bufio.NewReader(c)
		for _, size := range []int{1, 100, 4096, 100_000} {
			go func() {
				_, _ = io.WriteString(c, asks(fmt.Sprintf("Content-Length: %d\r\n", size), "/other")+strings.Repeat("x", size))
			}()
			if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 204 || res.Close {
				t.Fatalf("a body of %d: %+v, %v", size, res, err)
			}
			time.Sleep(time.Second)
		}
	})
}
