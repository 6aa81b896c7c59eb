package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
)

// RoundTrip sends a request as it is, and tells the httptrace of its context of 1xx responses.
func (t *directTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := &outgoing{x: &exchange{Context: r.Context()}, in: r, head: head{client: r.Header, asIs: true}}
	out.answer.open(make(http.Header))
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		out.w = &tracedWriter{out.answer.header, trace}
	}
	res, err := t.send(out, r.URL.RequestURI(), r.Host)
	if err == nil && res.Header == nil {
		res.Header = out.answer.header
		res.Status = fmt.Sprint(res.StatusCode, " ", http.StatusText(res.StatusCode))
	}
	return res, err
}

// tracedWriter is a client that gets nothing but 1xx responses.
type tracedWriter struct {
	header http.Header
	trace  *httptrace.ClientTrace
}

func (w *tracedWriter) Header() http.Header         { return w.header }
func (w *tracedWriter) Write(b []byte) (int, error) { return len(b), nil }

func (w *tracedWriter) WriteHeader(status int) {
	_ = w.trace.Got1xxResponse(status, textproto.MIMEHeader(w.header))
}

// scripted is an upstream that answers the requests of its n-th connection with
// the texts of its n-th line, as they are. Behind the last text of a connection it
// is closed; behind the last line come connections that are closed at once.
type scripted struct {
	net.Listener
	mu     sync.Mutex
	conns  int           // under mu: so many were opened
	heads  []string      // under mu: the request lines that came
	closed chan struct{} // gets one for each connection that its peer closed
	ended  chan struct{} // gets one for each connection that was closed here
}

func newScripted(t *testing.T, lines ...[]string) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{Listener: l, closed: make(chan struct{}, 100), ended: make(chan struct{}, 100)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			var answers []string
			if n < len(lines) {
				answers = lines[n]
			}
			serving.Go(func() { s.serve(c, answers) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return s
}

func (s *scripted) serve(c net.Conn, answers []string) {
	defer func() {
		c.Close()
		s.ended <- struct{}{}
	}()
	in := bufio.NewReader(c)
	for _, answer := range answers {
		r, err := http.ReadRequest(in)
		if err != nil {
			s.closed <- struct{}{}
			return
		}
		s.mu.Lock()
		s.heads = append(s.heads, r.Method+" "+r.RequestURI)
		s.mu.Unlock()
		if answer == "hang" {
			_, _ = in.ReadByte()
			s.closed <- struct{}{}
			return
		}
		_, _ = io.WriteString(c, answer)
	}
	if len(answers) > 0 && strings.HasSuffix(answers[len(answers)-1], "stay\n") {
		_, _ = in.ReadByte() // until the other side has had enough
		s.closed <- struct{}{}
	}
}

func (s *scripted) seen() (conns int, heads []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns, append([]string(nil), s.heads...)
}

func (s *scripted) transport(wait time.Duration) *directTransport {
	var d net.Dialer
	return &directTransport{dial: d.DialContext, address: s.Addr().String(), headTimeout: wait, idleTimeout: time.Minute, maxIdle: 10}
}

// connected returns the two ends of a connection that is open until the test ends. The
// port of the first was bound: nobody else gets it while that is open.
func connected(t testing.TB) (conn, peer *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	local := l.Addr().(*net.TCPAddr)
	conn, err = net.DialTCP("tcp", &net.TCPAddr{IP: local.IP}, local)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return conn, other.(*net.TCPConn)
}

const (
	okLine = "HTTP/1.1 200 OK\r\n"
	five   = okLine + "Content-Length: 5\r\n\r\nhello"
)

// askDirect returns the status and the body, or the error.
func askDirect(ctx context.Context, t *testing.T, s *directTransport, method, path string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://upstream"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !s.handles(&outgoing{in: r}) {
		t.Fatalf("%s %s is not taken", method, path)
	}
	res, err := s.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%d %s", res.StatusCode, body), err
}

func wantAnswer(t *testing.T, s *directTransport, method, path, want string) {
	t.Helper()
	if got, err := askDirect(t.Context(), t, s, method, path); err != nil || got != want {
		t.Fatalf("%s %s: got %q (%v), want %q", method, path, got, err, want)
	}
}
