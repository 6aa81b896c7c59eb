package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/iotest"
	"time"
)

// watching returns a handler that tells of each request what it is, and lets wait run while its
// client is watched.
func watching(s **Server, wait func(w http.ResponseWriter, watched context.Context, r *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c Client
		c.Open(*s, w, r, time.Now())
		watch := c.Watch(r.Context())
		defer watch.Stop()
		wait(w, watch, r)
	})
}

// A client that leaves is noticed by the watch, and without TLS not by net/http: that reads nothing
// meanwhile.
func TestWatchedClientLeaves(t *testing.T) {
	f := func(what, request string, leave func(net.Conn)) {
		t.Run(what, func(t *testing.T) {
			plainAndTLS(t, func(t *testing.T, config *tls.Config) {
				var s *Server
				entered, ended := make(chan bool), make(chan error, 1)
				srv := start(t, ServerOptions{OwnClients: true, Handler: watching(&s, func(_ http.ResponseWriter, watched context.Context, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					entered <- true
					<-watched.Done()
					ended <- r.Context().Err()
				})}, config)
				s = srv.Server
				conn := dial(t, srv.addr, config)
				fmt.Fprint(conn, request)
				<-entered
				leave(conn)
				if err := <-ended; err != nil && config == nil {
					t.Errorf("net/http has watched the client: %v", err)
				}
				soon(t, "nobody is watched", func() bool { return s.watcher.idle() })
			})
		})
	}
	const get, post = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
	closed := func(c net.Conn) { _ = c.Close() }
	f("without a body", get, closed)
	f("with a body", post, closed)
	f("which has sent the next request", get+get, closed)
	f("by a reset", get, func(c net.Conn) {
		if secure, ok := c.(*tls.Conn); ok {
			c = secure.NetConn()
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	})
	f("with its half", get, func(c net.Conn) { _ = CloseWrite(c) })
}

// idle reports whether nobody is watched, and the goroutine has ended.
func (g *watcher) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.watches) == 0 && !g.running
}

// Requests that follow each other on a connection, at once or while the first is served, are all
// answered.
func TestWatchedClientGoesOn(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, config *tls.Config) {
		var s *Server
		entered, release := make(chan bool, 10), make(chan bool, 10)
		srv := start(t, ServerOptions{OwnClients: true, Handler: watching(&s, func(w http.ResponseWriter, _ context.Context, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			entered <- true
			<-release
			fmt.Fprintf(w, "%s %s", r.URL.Path, body)
		})}, config)
		s = srv.Server
		conn := dial(t, srv.addr, config)
		in := bufio.NewReader(conn)
		answered := func(want string) {
			t.Helper()
			release <- true
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); string(body) != want || err != nil {
				t.Errorf("got %q, %v, want %q", body, err, want)
			}
		}
		fmt.Fprint(conn, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh")
		<-entered
		fmt.Fprint(conn, "iGET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
		answered("/1 ")
		answered("/2 hi")
		answered("/3 ")
		fmt.Fprint(conn, "GET /4 HTTP/1.1\r\nHost: a\r\n\r\n")
		answered("/4 ")
	})
}

// A client that ends its side of a tunnel has not left.
func TestWatchedTunnel(t *testing.T) {
	var s *Server
	srv := start(t, ServerOptions{OwnClients: true, Handler: watching(&s, func(w http.ResponseWriter, watched context.Context, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.Copy(io.Discard, iotest.OneByteReader(conn)) // which is no watch by net/http
		watched.(*Watch).Look()
		fmt.Fprint(conn, watched.Err())
	})}, nil)
	s = srv.Server
	conn := dial(t, srv.addr, nil)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\nhello")
	_ = CloseWrite(conn)
	if got, err := io.ReadAll(conn); string(got) != "<nil>" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// A client is looked at often at first, and then ever more rarely, but never too rarely.
func TestWatchLooksMoreRarely(t *testing.T) {
	start := time.Now()
	w := &Watch{Context: t.Context(), since: start}
	g := watcher{watches: map[*Watch]struct{}{w: {}}}
	for after, want := range map[time.Duration]time.Duration{0: goneEvery, goneEvery: goneEvery, 2 * time.Second: time.Second / 2, time.Hour: goneSlowest} {
		w.next = start
		if due, running := g.due(start.Add(after)); len(due) != 1 || !running {
			t.Errorf("after %s: %d are due, running %v", after, len(due), running)
		}
		if got := w.next.Sub(start.Add(after)); got != want {
			t.Errorf("after %s: looks after %s, want %s", after, got, want)
		}
		if due, _ := g.due(w.next.Add(-1)); len(due) != 0 {
			t.Errorf("after %s: looks too early", after)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.Context = ended
	if due, running := g.due(start.Add(2 * time.Hour)); len(due) != 0 || running {
		t.Error("a request that has ended is watched")
	}
}
