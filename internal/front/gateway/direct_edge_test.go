package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// cut is a connection whose peer resets it: before says whether the next write is to
// be the one that finds out. Such a write goes on until the news has come.
type cut struct {
	*net.TCPConn
	before func() bool
}

func (c *cut) Write(b []byte) (int, error) {
	for gone := c.before(); ; {
		if n, err := c.TCPConn.Write(b); !gone || err != nil {
			return n, err
		}
	}
}

// An upstream may answer long headers before it has read them all, and close. That is the
// response.
func TestDirectHearsAnAnswerToHalfARequest(t *testing.T) {
	up := rawUpstream(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1000))
		_, _ = io.WriteString(conn, "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 4\r\n\r\nlong")
		// It is closed with much unread: that is a reset.
	})
	s := &directTransport{address: up.Addr().String(), headTimeout: time.Minute, idleTimeout: time.Minute, maxIdle: 10}
	s.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		writes := 0
		return &cut{conn.(*net.TCPConn), func() bool { writes++; return writes > 1 }}, nil
	}
	r := newRequest(t, "GET", "http://upstream/", nil)
	r.Header.Set("X-Long", strings.Repeat("a", 10_000))
	r.Header.Set("X-Longer", strings.Repeat("a", 10_000))
	res, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge || string(body) != "long" || err != nil {
		t.Errorf("%s %q, %v", res.Status, body, err)
	}
	if s.takeIdle() != nil {
		t.Error("a connection with half a request on it is kept")
	}
}

// What came before a byte of the request was sent is not its response.
func TestDirectHearsNoAnswerToNothing(t *testing.T) {
	conn, peer := connected(t)
	other := newScripted(t, []string{five})
	s := other.transport(time.Minute)
	defer s.CloseIdleConnections()
	s.putIdle(newUpstreamConn(&cut{conn, func() bool { // it was looked at just now
		_, _ = io.WriteString(peer, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate")
		_ = peer.SetLinger(0)
		peer.Close()
		return true
	}}))
	wantAnswer(t, s, "GET", "/", "200 hello")
}

// After an error or a close, further reads do not return io.EOF: half a response must not
// be taken for a complete one.
func TestDirectBodyDoesNotEndTwice(t *testing.T) {
	f := func(name, answer string, spoil func(io.ReadCloser), want error) {
		t.Run(name, func(t *testing.T) {
			s := newScripted(t, []string{answer}).transport(time.Minute)
			defer s.CloseIdleConnections()
			res, err := s.RoundTrip(newRequest(t, "GET", "http://upstream/", nil))
			if err != nil {
				t.Fatal(err)
			}
			spoil(res.Body)
			for range 2 {
				if n, err := res.Body.Read(make([]byte, 10)); n != 0 || !errors.Is(err, want) {
					t.Errorf("%d, %v, want %v", n, err, want)
				}
			}
		})
	}
	all := func(b io.ReadCloser) { _, _ = io.ReadAll(b) }
	shut := func(b io.ReadCloser) { _ = b.Close() }
	both := func(b io.ReadCloser) { all(b); shut(b) }
	half := okLine + "Content-Length: 9\r\n\r\nhello"
	f("half a body", half, all, io.ErrUnexpectedEOF)
	f("half a chunk", okLine+"Transfer-Encoding: chunked\r\n\r\n9\r\nhello", all, io.ErrUnexpectedEOF)
	f("half a body, closed", half, both, io.ErrUnexpectedEOF)
	f("closed", five, shut, http.ErrBodyReadAfterClose)
	f("a whole body", five, all, io.EOF)
}

// Connections that become idle after CloseIdleConnections and before the next request are
// closed, too, as with http.Transport.
func TestDirectClosesWhatBecomesIdleLater(t *testing.T) {
	up := newScripted(t, []string{five + "stay\n"}, []string{five, five})
	s := up.transport(time.Minute)
	defer s.CloseIdleConnections()
	res, err := s.RoundTrip(newRequest(t, "GET", "http://upstream/", nil))
	if err != nil {
		t.Fatal(err)
	}
	s.CloseIdleConnections()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	soon(t, "it is closed", func() bool { return len(up.closed) == 1 })
	wantAnswer(t, s, "GET", "/second", "200 hello")
	wantAnswer(t, s, "GET", "/third", "200 hello")
	if conns, heads := up.seen(); conns != 2 || len(heads) != 3 {
		t.Errorf("%d connections, requests %q", conns, heads)
	}
}

// A machine that was suspended has timers that are late: whatever is between it and
// the upstream may have forgotten the connection long since.
func TestDirectUsesNothingThatIsTooOld(t *testing.T) {
	up := newScripted(t, []string{five, five}, []string{five})
	s := up.transport(time.Minute)
	defer s.CloseIdleConnections()
	wantAnswer(t, s, "GET", "/first", "200 hello")
	s.mu.Lock()
	s.idle[0].idleSince = time.Now().Round(0).Add(-time.Hour) // by the clock on the wall
	s.mu.Unlock()
	wantAnswer(t, s, "GET", "/second", "200 hello")
	if conns, heads := up.seen(); conns != 2 || len(heads) != 2 {
		t.Errorf("%d connections, requests %q", conns, heads)
	}
}

// An invalid status is the upstream's fault, and the client is told.
func TestGatewayOverAnUpstreamWithoutStatus(t *testing.T) {
	for _, status := range []string{"000", "042", "099"} {
		for _, method := range []string{"GET", "POST"} { // POST goes through http.Transport
			answer := "HTTP/1.1 " + status + " Odd\r\nContent-Length: 5\r\n\r\nhello"
			up := newScripted(t, []string{answer}, []string{answer}, []string{answer})
			g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}}, nil)
			if res, err := client.Do(newRequest(t, method, g.url, nil)); err != nil {
				t.Errorf("%s, %s: %v", status, method, err)
			} else if res.Body.Close(); res.StatusCode != http.StatusBadGateway {
				t.Errorf("%s, %s: %s", status, method, res.Status)
			}
		}
	}
}

// Extra bytes after a response, or in one that has no body, are not the next response.
func TestDirectIsNotPutOutOfStep(t *testing.T) {
	f := func(name, method, answer, want string, conns int) {
		t.Run(name, func(t *testing.T) {
			up := newScripted(t, []string{answer, five}, []string{five})
			s := up.transport(time.Minute)
			defer s.CloseIdleConnections()
			wantAnswer(t, s, method, "/first", want)
			wantAnswer(t, s, "GET", "/second", "200 hello")
			if got, heads := up.seen(); got != conns || len(heads) != 2 {
				t.Errorf("%d connections, requests %q", got, heads)
			}
		})
	}
	poison := "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	f("304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 ", 1)
	f("304 with a body", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", "304 ", 2)
	f("204 with a body", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "204 ", 2)
	f("204 in chunks", "GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "204 ", 2)
	f("HEAD with a body", "HEAD", five, "200 ", 2)
	f("HEAD in chunks", "HEAD", okLine+"Transfer-Encoding: chunked\r\n\r\n", "200 ", 1)
	f("HEAD with an answer as body", "HEAD", okLine+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(poison))+poison, "200 ", 2)
	f("two answers", "GET", five+poison, "200 hello", 2)
	f("two answers in chunks", "GET", okLine+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+poison, "200 hello", 2)
	f("two lengths", "GET", okLine+"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "200 hello", 1)
	f("trailers", "GET", okLine+"Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n", "200 hello", 1)
	f("empty and the last", "GET", okLine+"Connection: close\r\nContent-Length: 0\r\n\r\n", "200 ", 2)
	f("HTTP/1.0 that stays", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "200 hello", 1)
}

// dated records its deadline, and what it was at the last write.
type dated struct {
	*net.TCPConn
	until, asked time.Time
}

func (d *dated) SetDeadline(at time.Time) error {
	d.until = at
	return d.TCPConn.SetDeadline(at)
}

func (d *dated) Write(b []byte) (int, error) {
	d.asked = d.until
	return d.TCPConn.Write(b)
}

// The timeout is for the headers and not for the body, and one that passes while a
// connection is idle does not fail the next request.
func TestDirectTimeIsForTheHead(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	rest := make(chan bool)
	go http.Serve(server, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/short" {
			return
		}
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "10")
		}
		_, _ = io.WriteString(w, "hello")
		w.(http.Flusher).Flush()
		<-rest
		_, _ = io.WriteString(w, "world")
	}))
	var d net.Dialer
	var conn *dated
	dials := 0
	s := &directTransport{address: server.Addr().String(), headTimeout: time.Minute, idleTimeout: time.Minute, maxIdle: 10}
	s.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn = &dated{TCPConn: c.(*net.TCPConn)}
		return conn, nil
	}
	defer s.CloseIdleConnections()
	slow := func(path string) {
		t.Helper()
		res, err := s.RoundTrip(newRequest(t, "GET", "http://upstream"+path, nil))
		if err != nil {
			t.Fatal(err)
		}
		if conn.asked.IsZero() || !conn.until.IsZero() {
			t.Errorf("%s: until %v for the head, %v for the body; want an end for the head only", path, conn.asked, conn.until)
		}
		rest <- true
		if body, err := io.ReadAll(res.Body); string(body) != "helloworld" || err != nil {
			t.Errorf("%s: %q, %v", path, body, err)
		}
	}
	overdue := func() {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		l := s.idle[0]
		l.deadline = time.Now().Add(-time.Second)
		if err := l.SetDeadline(l.deadline); err != nil {
			t.Fatal(err)
		}
	}
	slow("/known")
	slow("/unknown")
	wantAnswer(t, s, "GET", "/short", "200 ")
	overdue()
	wantAnswer(t, s, "GET", "/short", "200 ")
	overdue()
	slow("/known")
	if dials != 1 {
		t.Errorf("%d connections, want one", dials)
	}
}
