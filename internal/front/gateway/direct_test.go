package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestDirectUsesAConnectionAgain(t *testing.T) {
	up := newScripted(t, []string{
		five, okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
		okLine + "Content-Length: 5\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n",
		okLine + "Content-Length: 0\r\n\r\n", five, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
	})
	s := up.transport(time.Minute)
	defer s.CloseIdleConnections()
	wantAnswer(t, s, "GET", "/1", "200 hello")
	wantAnswer(t, s, "GET", "/2", "200 hello")
	wantAnswer(t, s, "HEAD", "/3", "200 ")
	wantAnswer(t, s, "GET", "/4", "204 ")
	wantAnswer(t, s, "GET", "/5", "304 ")
	wantAnswer(t, s, "OPTIONS", "/6", "200 ")
	wantAnswer(t, s, "GET", "/7", "200 hello")
	wantAnswer(t, s, "GET", "/8", "404 no")
	if conns, heads := up.seen(); conns != 1 || len(heads) != 8 {
		t.Errorf("%d connections for %q, want one", conns, heads)
	}
}

// A connection that was closed while it was idle costs nobody an answer.
func TestDirectIsNotBotheredByClosedConnections(t *testing.T) {
	f := func(name string, first []string, sent int) {
		t.Run(name, func(t *testing.T) {
			up := newScripted(t, first, []string{five, five})
			s := up.transport(time.Minute)
			defer s.CloseIdleConnections()
			wantAnswer(t, s, "GET", "/first", "200 hello")
			wantAnswer(t, s, "GET", "/second", "200 hello")
			wantAnswer(t, s, "GET", "/third", "200 hello")
			if conns, heads := up.seen(); conns != 2 || len(heads) != sent {
				t.Errorf("%d connections, requests %q", conns, heads)
			}
		})
	}
	f("it says so", []string{okLine + "Connection: close\r\nContent-Length: 5\r\n\r\nhello"}, 3)
	f("HTTP/1.0", []string{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"}, 3)
	f("until the end", []string{okLine + "\r\nhello"}, 3)
}

// What comes on an idle connection is not the answer to the next request.
func TestDirectTakesNoAnswerToAnotherQuestion(t *testing.T) {
	late := "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlate"
	up := newScripted(t, []string{five + late + "stay\n"}, []string{five})
	s := up.transport(time.Minute)
	defer s.CloseIdleConnections()
	wantAnswer(t, s, "GET", "/first", "200 hello")
	wantAnswer(t, s, "GET", "/second", "200 hello")
	<-up.closed
	if conns, heads := up.seen(); conns != 2 || fmt.Sprint(heads) != "[GET /first GET /second]" {
		t.Errorf("%d connections, requests %q", conns, heads)
	}
}

// The same, but it comes long after the last response.
func TestDirectLooksBeforeItAsks(t *testing.T) {
	conn, peer := connected(t)
	l := newUpstreamConn(conn)
	defer l.Close()
	if !l.stillIdle() {
		t.Error("a new connection is not idle")
	}
	_ = l.SetDeadline(time.Now().Add(-time.Second))
	if !l.stillIdle() {
		t.Error("a deadline is mistaken for data")
	}
	_, _ = io.WriteString(peer, "HTTP/1.1 408 Request Timeout\r\n\r\n")
	soon(t, "what came is noticed", func() bool { return !l.stillIdle() })
	peer.Close()
	soon(t, "the end is noticed", func() bool { return !l.stillIdle() })
}

func TestDirectGivesUp(t *testing.T) {
	t.Run("no head in time", func(t *testing.T) {
		up := newScripted(t, []string{"hang"})
		s := up.transport(20 * time.Millisecond)
		if _, err := askDirect(t.Context(), t, s, "GET", "/"); !isTimeout(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		<-up.closed
	})
	t.Run("no head in time on a used connection", func(t *testing.T) {
		up := newScripted(t, []string{"hang"}, []string{five})
		s := up.transport(20 * time.Millisecond)
		conn, err := s.dial(t.Context(), "tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		s.putIdle(newUpstreamConn(conn))
		if _, err := askDirect(t.Context(), t, s, "GET", "/"); !isTimeout(err) {
			t.Errorf("got %v, want a timeout", err)
		}
		<-up.closed
		if conns, heads := up.seen(); conns != 1 {
			t.Errorf("a slow upstream was asked again: %q on %d connections", heads, conns)
		}
	})
	t.Run("the client has left", func(t *testing.T) {
		up := newScripted(t, []string{"hang"})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			soon(t, "it was asked", func() bool { _, heads := up.seen(); return len(heads) == 1 })
			cancel()
		}()
		if _, err := askDirect(ctx, t, up.transport(time.Minute), "GET", "/"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		<-up.closed
	})
	f := func(name, answer string, want error) {
		t.Run(name, func(t *testing.T) {
			up := newScripted(t, []string{answer})
			if _, err := askDirect(t.Context(), t, up.transport(time.Minute), "GET", "/"); err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
	f("no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", nil)
	f("other protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: chess\r\nConnection: upgrade\r\n\r\n", errSwitched)
	f("endless head", okLine+strings.Repeat("A: "+strings.Repeat("a", 1000)+"\r\n", maxResponseHead/1000+2), errLongHead)
	f("half a body", okLine+"Content-Length: 9\r\n\r\nhello", io.ErrUnexpectedEOF)
}

// A body that is closed before its end costs the connection.
func TestDirectDoesNotWaitForTheRest(t *testing.T) {
	up := newScripted(t, []string{okLine + "Content-Length: 100000000\r\n\r\nhello stay\n"}, []string{five})
	s := up.transport(time.Minute)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://upstream/", nil)
	res, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	<-up.closed
	if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a closed body was read: %d, %v", n, err)
	}
	wantAnswer(t, s, "GET", "/second", "200 hello")
	s.CloseIdleConnections()
}

func TestDirectPassesOnWhatComesBefore(t *testing.T) {
	up := newScripted(t, []string{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + five})
	s := up.transport(time.Minute)
	defer s.CloseIdleConnections()
	var got []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, fmt.Sprint(code, h))
			return nil
		},
	})
	if answer, err := askDirect(ctx, t, s, "GET", "/"); answer != "200 hello" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	if fmt.Sprint(got) != "[103 map[Link:[</a>]] 102 map[]]" {
		t.Errorf("was told of %q", got)
	}
	up = newScripted(t, []string{"HTTP/1.1 103 Early Hints\r\n\r\n" + five})
	other := up.transport(time.Minute)
	defer other.CloseIdleConnections()
	wantAnswer(t, other, "GET", "/", "200 hello") // where nobody wants to know
}

func TestDirectKeepsConnectionsForAWhile(t *testing.T) {
	stay := five + "stay\n"
	up := newScripted(t, []string{stay}, []string{stay}, []string{stay})
	s := up.transport(time.Minute)
	s.idleTimeout, s.maxIdle = 50*time.Millisecond, 2
	conns := make([]*upstreamConn, 3)
	for i := range conns {
		conn, err := s.dial(t.Context(), "tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = newUpstreamConn(conn)
	}
	for _, c := range conns {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		s.putIdle(c)
	}
	soon(t, "all are closed", func() bool { return len(up.closed) == 3 })
	if s.takeIdle() != nil {
		t.Error("a connection is still idle")
	}
}

func TestDirectLeavesTheRestToTheTransport(t *testing.T) {
	f := func(takes bool, method string, change func(*http.Request)) {
		t.Helper()
		r, _ := http.NewRequest(method, "http://upstream/", nil)
		if change != nil {
			change(r)
		}
		out := &outgoing{in: r}
		out.openBody()
		if got := new(directTransport).handles(out); got != takes {
			t.Errorf("%s %v: taken %t", method, r.Header, got)
		}
	}
	f(true, "GET", nil)
	f(true, "GET", func(r *http.Request) { r.Body = http.NoBody })
	f(false, "GET", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("b")), 1 })
	f(false, "GET", func(r *http.Request) { r.Header.Set("Upgrade", "websocket") })
	f(false, "GET", func(r *http.Request) { r.Header.Set("Expect", "100-continue") })
	f(false, "POST", nil) // if its connection is closed just then, nobody knows whether it was done
	f(false, "DELETE", nil)
	f(true, "GET", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("")) }) // as HTTP/2 has it
	if (*directTransport)(nil).handles(&outgoing{in: newRequest(t, "GET", "https://upstream/", nil)}) {
		t.Error("taken by nobody")
	}
}

func TestUpstreamPort(t *testing.T) {
	for host, want := range map[string]string{
		"a": "a:80", "a:81": "a:81", "[::1]": "[::1]:80", "[::1]:81": "[::1]:81", "127.0.0.1": "127.0.0.1:80",
		"a:": "a:80", "[::1]:": "[::1]:80",
	} {
		if got := withDefaultPort(host); got != want {
			t.Errorf("withPort(%q) = %q, want %q", host, got, want)
		}
	}
}

// The resolver knows ASCII names only; http.Transport translates others.
func TestUpstreamWithAForeignName(t *testing.T) {
	o := new(Options)
	if newUpstream(parseURL(t, "http://bücher.example"), o, nil).direct != nil {
		t.Error("a name that is not ASCII is dialed as it is")
	}
	if newUpstream(parseURL(t, "http://xn--bcher-kva.example"), o, nil).direct == nil {
		t.Error("an ASCII name is not dialed")
	}
}

// No client notices an upstream that restarts between two requests, and no goroutine of
// http.Transport is needed.
func TestGatewayOverAnUpstreamThatClosesWhatIsIdle(t *testing.T) {
	up := newScripted(t, []string{five}, []string{five}, []string{five})
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}}, nil)
	for range 3 {
		if res, body := get(t, g.url); res.StatusCode != http.StatusOK || body != "hello" {
			t.Errorf("%s %q", res.Status, body)
		}
		<-up.ended
	}
	if conns, heads := up.seen(); conns != 3 || len(heads) != 3 {
		t.Errorf("the upstream got %q", heads)
	}
}
