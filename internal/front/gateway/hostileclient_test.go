package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A body that becomes too long while its request is being answered does not touch the
// answer: http.Transport reads the body on another goroutine than the one that answers.
func TestBodyLimitDuringAnAnswer(t *testing.T) {
	answer := okLine + strings.Repeat("X-A: b\r\n", 500) + "Content-Length: 5\r\n\r\nhello"
	reached := make(chan bool)
	up := rawUpstream(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		reached <- true // and the rest of the body comes at the same time as the answer
		_, _ = io.WriteString(conn, answer)
		_, _ = io.Copy(io.Discard, in)
	})
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}, Limits: Limits{Body: 100}}, nil)
	for range 100 {
		conn := dial(t, g.addr)
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n32\r\n%050d\r\n", 0)
		<-reached
		fmt.Fprintf(conn, "64\r\n%0100d\r\n0\r\n\r\n", 0)
		// The answer may be broken off, as the request is.
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && (res.StatusCode != http.StatusOK && res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close) {
			t.Errorf("%s, close %t", res.Status, res.Close)
		}
		conn.Close()
	}
}

// manyHeaders returns n header lines, and a Connection header of about so many bytes that lists
// every other of them, again and again.
func manyHeaders(n, bytes int) (lines, connection string) {
	var b, list strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: %d\r\n", i, i)
	}
	for i := 0; list.Len() < bytes; i += 2 {
		fmt.Fprintf(&list, "x-%d,,none-%d, ", i%n, i)
	}
	return b.String(), "Connection: " + list.String() + "\r\n"
}

// A list of headers may be as long as a head: all of it counts.
func TestLongConnectionLists(t *testing.T) {
	lines, connection := manyHeaders(100, 50_000)
	want := func(head, what string) {
		t.Helper()
		for i := range 100 {
			if line := fmt.Sprintf("X-%d: %d\n", i, i); strings.Contains(head+"\n", line) != (i%2 == 1) {
				t.Errorf("%s: %q is passed on: %t", what, line, i%2 == 0)
			}
		}
	}
	up := newParrot(t, okLine+lines+connection+"Content-Length: 0\r\n\r\n")
	for way, g := range eitherWay(t, up, "") {
		conn := dial(t, g.addr)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: example.com\r\n%s%s\r\n", lines, connection)
		in := bufio.NewReader(conn)
		var answer strings.Builder
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			answer.WriteString(strings.TrimSuffix(line, "\r\n") + "\n")
		}
		want(up.lastHead(), "the request, "+way)
		want(answer.String(), "the answer, "+way)
	}
}

// So may lists of trailers, and what both list is not passed on.
func TestLongTrailerLists(t *testing.T) {
	u := new(trailed)
	g := start(t, Options{Upstreams: []*url.URL{serve(t, u.ServeHTTP)}}, nil)
	var trailer, connection strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&trailer, "x-%d,", i)
		fmt.Fprintf(&connection, "X-%d,", i+1)
	}
	conn := dial(t, g.addr)
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nTrailer: %s\r\nConnection: %s\r\n\r\n4\r\nbody\r\n0\r\nX-0: 1\r\nX-1: 1\r\nX-2499: 1\r\n\r\n", trailer.String(), connection.String())
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", res, err)
	}
	if announced, came := u.got(); announced != "X-0" || came != "X-0" {
		t.Errorf("the upstream was announced %.100q and got %.100q", announced, came)
	}
}

// BenchmarkHeadOfAStranger is the work for a request whose header is as long as is allowed, and
// all of it made to cost time.
func BenchmarkHeadOfAStranger(b *testing.B) {
	lines, connection := manyHeaders(120, 60_000)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: example.com\r\n" + lines + connection + "\r\n")))
	if err != nil {
		b.Fatal(err)
	}
	x := new(exchange)
	for b.Loop() {
		h := newHead(r, x)
		for range h.all() {
		}
	}
}

// A client that waits for a 100 gets one, however many the upstream sends and whatever else;
// one of HTTP/1.0 gets none.
func TestContinueIsSaidOnce(t *testing.T) {
	const proceed, hints = "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	f := func(before, after string, hinted bool) {
		t.Helper()
		up := rawUpstream(t, func(conn net.Conn) {
			r, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, before)
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(conn, "%s"+okLine+"Connection: close\r\nContent-Length: %d\r\n\r\n%s", after, len(body), body)
		})
		g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}}, nil)
		for _, version := range []string{"1.1", "1.0"} {
			conn := dial(t, g.addr)
			fmt.Fprintf(conn, "POST / HTTP/%s\r\nHost: example.com\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", version)
			in := bufio.NewReader(conn)
			waits := version == "1.1"
			if !waits {
				fmt.Fprint(conn, "hello")
			}
			seen := map[int]int{}
			for seen[http.StatusOK] == 0 {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("%q, HTTP/%s, after %v: %v", before, version, seen, err)
				}
				if seen[res.StatusCode]++; res.StatusCode == http.StatusContinue && waits {
					fmt.Fprint(conn, "hello")
					waits = false
				}
				if body, err := io.ReadAll(res.Body); res.StatusCode == http.StatusOK && (string(body) != "hello" || err != nil) {
					t.Errorf("%q, HTTP/%s: %q, %v", before, version, body, err)
				}
			}
			switch {
			case version == "1.0" && len(seen) > 1, version == "1.1" && seen[http.StatusContinue] != 1:
				t.Errorf("%q, HTTP/%s: heard %v", before, version, seen)
			case version == "1.1" && hinted && seen[http.StatusEarlyHints] == 0:
				t.Errorf("%q, then %q: heard %v", before, after, seen)
			}
		}
	}
	f(proceed, "", false)
	f(strings.Repeat(proceed, 5), proceed, false)
	f(hints+proceed, "", false)
	f(proceed+hints, "", false)
	f(proceed, hints, true)
	f("", proceed+hints, true) // it does not ask for the body, and gets it after a second
}

// What HTTP/2 has and HTTP/1 has not becomes what HTTP/1 has.
func TestHTTP2RequestsToHTTP1(t *testing.T) {
	up := newParrot(t, okLine+"Content-Length: 0\r\n\r\n")
	config, _ := certificate(t)
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}}, config)
	const status200, status400 = 0x80 | 8, 0x80 | 12 // as the static table of HPACK has them
	f := func(want byte, got, unseen string, header ...string) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			up.forget()
			g.reclaim()
			c := dialH2Wire(t, g.addr)
			c.send(method, "/a?b", header, "")
			head, _ := c.answered()
			if len(head) == 0 || head[0] != want {
				t.Errorf("%s with %q: the head of the answer is %x, want %x", method, header, head, want)
			}
			sent := up.lastHead()
			if (sent != "") != (want == status200) || !strings.Contains(sent+"\n", got) || unseen != "" && strings.Contains(strings.ToLower(sent), unseen) {
				t.Errorf("%s with %q: sent, want %q, not %q:\n%s", method, header, got, unseen, sent)
			}
			if want == status200 && (strings.Count(sent, "\nHost: ") != 1 || !strings.HasPrefix(sent, method+" /a?b HTTP/1.1\n")) {
				t.Errorf("%s with %q: sent\n%s", method, header, sent)
			}
			c.conn.Close()
		}
	}
	f(status200, "\nHost: example.com\n", "\n:", "x-a", "b")
	f(status200, "\nCookie: a=1; b=2; c=3\n", "", "cookie", "a=1", "cookie", "b=2; c=3")
	f(status200, "\nTe: trailers\n", "", "te", "trailers")
	f(status200, "\nHost: example.com\n", "", "host", "example.com")
	f(status200, "\nHost: example.com\n", "", "host", "EXAMPLE.com")
	f(status400, "", "", "host", "other.example")
	f(status400, "", "", "host", "example.com", "host", "other.example")
	f(status400, "", "", "host", "")
	f(status400, "", "", "te", "gzip")
	f(status400, "", "", "connection", "x-a", "x-a", "b")
	f(status400, "", "", "transfer-encoding", "chunked")
	f(status400, "", "", "upgrade", "websocket")
	f(status200, "", "\ncontent-length: 5", "content-length", "5") // and no body
	f(status200, "", "gone", "x-forwarded-for", "gone", "forwarded", "for=gone", "proxy-authorization", "gone", "x_real_ip", "gone")
}

// FuzzRequestsEitherWay holds the two ways to an upstream to each other, whatever headers a client
// sends.
func FuzzRequestsEitherWay(f *testing.F) {
	for _, q := range requests {
		if line, header, ok := strings.Cut(q.request, "\r\n"); ok && strings.HasPrefix(line, "GET / ") && !strings.Contains(header, "\r\n\r\n") {
			f.Add(header)
		}
	}
	up := newParrot(f, okLine+"Content-Length: 0\r\n\r\n")
	gateways := eitherWay(f, up, "")
	f.Fuzz(func(t *testing.T, header string) {
		request := "GET / HTTP/1.1\r\n" + header + "\r\n\r\n"
		in := bufio.NewReader(strings.NewReader(request))
		if r, err := http.ReadRequest(in); err != nil || in.Buffered() > 0 || r.Body != http.NoBody { // one that is refused, or not alone
			return
		}
		got := map[string]string{}
		for way, g := range gateways {
			up.forget()
			reply := heard(t, g, request)
			got[way] = reply[:min(4, len(reply))] + up.lastHead()
		}
		if got["direct"] != got["transport"] {
			t.Errorf("%q: sent directly\n%s\nthrough http.Transport\n%s", header, got["direct"], got["transport"])
		}
	})
}

// A GET over HTTP/2 has no body, though net/http gives it one: it is sent directly.
func TestHTTP2RequestsAreSentDirectly(t *testing.T) {
	config, _ := certificate(t)
	g := start(t, Options{Upstreams: []*url.URL{serve(t, hello)}}, config)
	c := http2Client(t)
	for range 3 {
		res, err := c.Get(g.url)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != "hello" || err != nil || res.ProtoMajor != 2 {
			t.Errorf("%s: %q, %v", res.Proto, body, err)
		}
		res.Body.Close()
		soon(t, "its connection is idle", func() bool {
			direct := g.pool[0].direct
			direct.mu.Lock()
			defer direct.mu.Unlock()
			return len(direct.idle) == 1
		})
	}
}

// keepingWriter fails, and keeps what it was given for a while, as net/http does over HTTP/2.
type keepingWriter struct{ kept []byte }

func (*keepingWriter) Header() http.Header { return http.Header{} }
func (*keepingWriter) WriteHeader(int)     {}
func (w *keepingWriter) Write(b []byte) (int, error) {
	w.kept = b
	return 0, errors.New("the stream was reset")
}

// A buffer that was not written is not used for another answer.
func TestBufferOfAFailedWrite(t *testing.T) {
	for range 100 {
		w := new(keepingWriter)
		out := &outgoing{x: new(exchange), w: w}
		if err := out.copyBody(strings.NewReader("hello"), false); err == nil {
			t.Fatal("the write failed, and nobody noticed")
		}
		for range 3 {
			if buf := responseBuffers.Get(); &buf[0] == &w.kept[0] {
				t.Fatal("two answers have one buffer")
			}
		}
	}
}

// A client that ends its half of a tunnel holds the other no longer than silence is allowed.
func TestSilentHalfOfATunnel(t *testing.T) {
	t.Parallel()
	testdep.Undisturbed(t, brief/4, func(t testing.TB) {
		held := make(chan bool)
		t.Cleanup(func() { close(held) })
		g := start(t, Options{
			Limits: Limits{Tunnel: brief},
			Upstreams: []*url.URL{serve(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, buf, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				defer conn.Close()
				fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
				_ = buf.Flush()
				for range 5 { // which takes longer
					time.Sleep(brief / 2)
					_, _ = io.WriteString(conn, "a")
				}
				<-held // it does not mind that the client has ended its half
			})},
		}, nil)
		conn := dial(t, g.addr)
		in := openTunnel(t, conn)
		_ = conn.(*net.TCPConn).CloseWrite()
		if all, err := io.ReadAll(in); err != nil || string(all) != "aaaaa" {
			t.Errorf("%q, %v", all, err)
		}
		soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
	})
}
