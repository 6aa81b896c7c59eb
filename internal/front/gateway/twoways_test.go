package gateway

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

// parrot is an upstream that answers every request with the same bytes, closes the
// connection, and keeps the heads of what it got. It does not say that it closes, so a gateway
// may keep a connection, and find out too late: reclaim it before the next request.
type parrot struct {
	net.Listener
	mu     sync.Mutex
	answer string   // under mu
	piece  int      // under mu: it writes so many bytes at a time; 0 means all
	heads  []string // under mu
}

// say changes the answer.
func (p *parrot) say(answer string, piece int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.piece = answer, piece
}

func newParrot(t testing.TB, answer string) *parrot {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &parrot{Listener: l, answer: answer}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return p
}

func (p *parrot) serve(c net.Conn) {
	defer c.Close()
	var raw bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &raw)))
	if err != nil {
		return
	}
	head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
	_, _ = io.Copy(io.Discard, r.Body)
	p.mu.Lock()
	p.heads = append(p.heads, head)
	answer, piece := []byte(p.answer), p.piece
	p.mu.Unlock()
	if piece == 0 {
		piece = max(1, len(answer))
	}
	for part := range slices.Chunk(answer, piece) {
		if _, err := c.Write(part); err != nil {
			return
		}
	}
}

// forget makes as if there had been no request.
func (p *parrot) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heads = nil
}

// lastHead returns the lines of the last request, sorted, but for what differs from request
// to request.
func (p *parrot) lastHead() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heads) == 0 {
		return ""
	}
	request, rest, _ := strings.Cut(p.heads[len(p.heads)-1], "\r\n")
	lines := strings.Split(rest, "\r\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "X-Request-Id: ") || line == "Connection: close" || line == "Traceparent: ours" // which http.Transport and tracing send
	})
	slices.Sort(lines)
	return request + "\n" + strings.Join(lines, "\n")
}

// tracing is a Tracer that passes on a header of its own.
type tracing struct{ Span }

func (tracing) Begin(*http.Request, bool, time.Time) Span { return tracing{} }
func (tracing) ID() string                                { return "" }
func (tracing) Deciding()                                 {}
func (tracing) Decided(*accesslog.Record)                 {}
func (tracing) Forward(_ string, h http.Header)           { h["Traceparent"] = []string{"ours"} }
func (tracing) Tried(Try)                                 {}
func (tracing) End(*accesslog.Record)                     {}

// eitherWay are gateways before one upstream that go there themselves, and through
// http.Transport: without idle connections, that sends everything.
func eitherWay(t testing.TB, up net.Listener, rules string) map[string]running {
	t.Helper()
	upstreams := []*url.URL{parseURL(t, "http://"+up.Addr().String())}
	return map[string]running{
		"direct":    start(t, Options{Gate: gateOf(t, rules), Upstreams: upstreams}, nil),
		"transport": start(t, Options{Gate: gateOf(t, rules), Upstreams: upstreams, Transport: Transport{Idle: -1}}, nil),
	}
}

// resetTime is how long until a limit is as good as new.
var resetTime = regexp.MustCompile(`;t=\d+`)

// brokenOff is what a client hears last of an answer that breaks off. How much it hears before
// differs.
const brokenOff = "unexpected EOF"

// heard asks g and returns all that a client hears, but for what differs from answer to
// answer.
func heard(t testing.TB, g running, request string) string {
	t.Helper()
	g.reclaim()
	conn := dial(t, g.addr)
	defer conn.Close()
	fmt.Fprint(conn, request)
	method, _, _ := strings.Cut(request, " ")
	in := bufio.NewReader(conn)
	var out strings.Builder
	for {
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			fmt.Fprintf(&out, "no answer: %v\n", err)
			return out.String()
		}
		if res.Trailer == nil && res.TransferEncoding != nil { // a stream that is over soon may have a length
			res.TransferEncoding = nil
		}
		fmt.Fprintf(&out, "%d close %t %s\n", res.StatusCode, res.Close, res.TransferEncoding)
		delete(res.Header, "Content-Length")
		delete(res.Header, "Date")
		delete(res.Header, "X-Request-Id")
		for _, name := range slices.Sorted(maps.Keys(res.Header)) {
			fmt.Fprintf(&out, "%s: %s\n", name, resetTime.ReplaceAllString(fmt.Sprintf("%q", res.Header[name]), ""))
		}
		body, err := io.ReadAll(res.Body)
		fmt.Fprintf(&out, "%q %v\n", body, err)
		if len(res.Trailer) > 0 {
			fmt.Fprintf(&out, "trailer %v\n", res.Trailer)
		}
		if res.StatusCode >= 200 {
			return out.String()
		}
	}
}

// answers are what upstreams answer, and what the client hears and does not hear of it.
var answers = []struct{ name, answer, hears, silent string }{
	{"plain", five, `"hello" <nil>`, "Content-Type"},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", `200 `, ""},
	{"odd status", "HTTP/1.1 799 Odd\r\nContent-Length: 5\r\n\r\nhello", `799 `, ""},
	{"empty", okLine + "Content-Length: 0\r\n\r\n", `200 `, ""},
	{"until the end", okLine + "X-A: b\r\n\r\nhello", `"hello" <nil>`, "Content-Type"},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", `"hello" <nil>`, ""},
	{"chunks", okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", `"hello" <nil>`, ""},
	{"no content", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", "204 ", ""},
	{"not modified", "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\n\r\n", `Etag: ["\"a\""]`, ""},
	{"no content, with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "204 ", "hello"},
	{"no content, with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "204 ", "hello"},
	{"no content, in chunks", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "204 ", "hello"},
	{"reset content", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", "205 ", ""},
	{"not modified, with a body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", "304 ", "hello"},
	{"not modified, with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "304 ", ""},

	{"several values", okLine + "Set-Cookie: a=1\r\nContent-Length: 0\r\nset-cookie: b=2\r\nSET-COOKIE:c=3\r\n\r\n", `Set-Cookie: ["a=1" "b=2" "c=3"]`, ""},
	{"blanks", okLine + "X-A: \t a  b \t\r\nX-B:\r\nX-C: \r\nContent-Length: 0\r\n\r\n", `X-A: ["a  b"]`, ""},
	{"bytes", okLine + "X-A: caf\xe9 \xc3\xa9\r\nContent-Length: 0\r\n\r\n", `X-A: ["caf\xe9 é"]`, ""},
	{"odd names", okLine + "x!#$%&'*+.^_`|~: 1\r\ncontent-length: 5\r\n\r\nhello", `"hello" <nil>`, ""},
	{"many lines", okLine + strings.Repeat("X-A: b\r\n", 100) + "Content-Length: 5\r\n\r\nhello", `"hello" <nil>`, ""},
	{"a long head", okLine + "X-A: " + strings.Repeat("b", 10_000) + "\r\nContent-Length: 5\r\n\r\nhello", `"hello" <nil>`, ""},
	{"a long body", okLine + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000), `x" <nil>`, ""},
	{"bare newlines", "HTTP/1.1 200 OK\nX-A: b\nContent-Length: 5\n\nhello", `X-A: ["b"]`, ""},
	{"a folded line", okLine + "X-A: a\r\n b\r\nContent-Length: 5\r\n\r\nhello", `X-A: ["a b"]`, ""},
	{"no cache, as it was said", okLine + "Pragma: no-cache\r\nContent-Length: 0\r\n\r\n", `Cache-Control: ["no-cache"]`, ""},
	{"a type of its own", okLine + "Content-Length: 5\r\nContent-Type: x/y\r\n\r\nhello", `Content-Type: ["x/y"]`, ""},

	{"hop by hop", okLine + "Connection: X-Hop, keep-alive\r\nX-Hop: gone\r\nKeep-Alive: timeout=gone\r\nProxy-Connection: gone\r\nProxy-Authenticate: gone\r\n" +
		"Proxy-Authorization: gone\r\nTe: gone\r\nUpgrade: gone\r\nX-Kept: 1\r\nContent-Length: 5\r\n\r\nhello", `X-Kept: ["1"]`, "gone"},
	{"hop by hop, plain", okLine + "Connection: Keep-Alive\r\nKeep-Alive: timeout=gone\r\nProxy-Connection: gone\r\nTe: gone\r\nUpgrade: gone\r\nContent-Length: 5\r\n\r\nhello", `"hello" <nil>`, "gone"},
	{"hop by hop, in two lines", okLine + "Connection: keep-alive\r\nConnection: ,, x-hop ;a=b ,X-Hop,\r\nX-Hop: gone\r\nContent-Length: 5\r\n\r\nhello", `"hello" <nil>`, "gone"},
	{"a length that Connection lists", okLine + "Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello", `"hello" <nil>`, ""},
	{"it is the last", okLine + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", "200 close false", ""},
	{"ours and theirs", okLine + "X-Request-Id: theirs\r\nRateLimit: \"inner\";r=3\r\nContent-Length: 0\r\n\r\n", `"\"inner\";r=3"`, "theirs"},
	{"ours, named by Connection", okLine + "Connection: RateLimit, RateLimit-Policy\r\nContent-Length: 0\r\n\r\n", `Ratelimit: ["\"limited\"`, ""},

	{"early hints", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n" + five, `Link: ["</b>"]`, ""},
	{"early hints with a length", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + five, `"hello" <nil>`, ""},
	{"early hints with a body", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello" + five, "502 ", ""},
	{"early hints, and nothing else", "HTTP/1.1 103 Early Hints\r\n\r\n", "502 ", ""},
	{"go on, unasked", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n" + five, `"hello" <nil>`, "100 "},
	{"an odd 1xx", "HTTP/1.1 199 Odd\r\nX-A: b\r\n\r\n" + five, "199 ", ""},
	{"processing, then chunks", "HTTP/1.1 102 Processing\r\n\r\n" + okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "102 ", ""},

	{"trailers", okLine + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n", "trailer map[X-Sum:[5]]", ""},
	{"unannounced trailers", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n", "trailer map[X-Sum:[5]]", ""},
	{"trailers of nothing", okLine + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 5\r\n\r\n", "trailer map[X-Sum:[5]]", ""},
	{"trailers, some announced", okLine + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\nX-More: 6\r\n\r\n", "X-More:[6]", ""},
	{"announced trailers that do not come", okLine + "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `"hello" <nil>`, ""},

	{"trailers that stand for headers", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: gone\r\nTransfer-Encoding: gone\r\nSet-Cookie: gone\r\nConnection: gone\r\nX-Request-Id: gone\r\nX-Sum: 5\r\n\r\n", "trailer map[X-Sum:[5]]", "gone"},
	{"a trailer that is a header", okLine + "Trailer: X-Sum\r\nX-Sum: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n", "trailer map[X-Sum:[5]]", ""},
	{"trailers that are not names", okLine + "Trailer: a b, X-Sum: 5, ,\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `"hello" <nil>`, "a b"},
	{"announces a length", okLine + "Trailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 ", ""},
	{"odd chunks", okLine + "Transfer-Encoding: Chunked\r\n\r\n005;a=b;c=\"\\n\"\r\nhello\r\n00\r\n\r\n", `"hello" <nil>`, ""},

	{"a chunk of no size", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\r\n0\r\n\r\n", brokenOff, "<nil>"},
	{"a negative chunk", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n-1\r\n0\r\n\r\n", brokenOff, "<nil>"},
	{"a chunk in hex", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0x1\r\na\r\n0\r\n\r\n", brokenOff, "<nil>"},
	{"a chunk without end", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nffffffffffffffff1\r\na\r\n0\r\n\r\n", brokenOff, "<nil>"},
	{"a chunk that is longer", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\nabc\r\n0\r\n\r\n", brokenOff, "<nil>"},
	{"a bare newline after a size", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\na\r\n0\r\n\r\n", brokenOff, "<nil>"},
	{"trailers without an end", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n", brokenOff, "<nil>"},
	{"trailers that are none", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum\r\n\r\n", brokenOff, "<nil>"},
	{"half a body", okLine + "Content-Length: 9\r\n\r\nhello", brokenOff, "<nil>"},
	{"half a chunk", okLine + "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", brokenOff, "<nil>"},
	{"chunks without an end", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", brokenOff, "<nil>"},

	{"two lengths", okLine + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "502 ", "hello"},
	{"the same length twice", okLine + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "200 ", ""},
	{"a length and chunks", okLine + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", `"hello" <nil>`, "Content-Length"},
	{"a negative length", okLine + "Content-Length: -5\r\n\r\nhello", "502 ", "hello"},
	{"a length with a plus", okLine + "Content-Length: +5\r\n\r\nhello", "502 ", "hello"},
	{"a length in hex", okLine + "Content-Length: 0x5\r\n\r\nhello", "502 ", "hello"},
	{"lengths in a list", okLine + "Content-Length: 5, 5\r\n\r\nhello", "502 ", "hello"},
	{"no length", okLine + "Content-Length:\r\n\r\nhello", "502 ", "hello"},
	{"a length without end", okLine + "Content-Length: 99999999999999999999\r\n\r\nhello", "502 ", "hello"},
	{"another coding", okLine + "Transfer-Encoding: gzip, chunked\r\n\r\nhello", "502 ", "hello"},
	{"two codings", okLine + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 ", ""},
	{"a name with a blank", okLine + "X A: b\r\nContent-Length: 5\r\n\r\nhello", `"hello" <nil>`, "X A"},
	{"a length with a blank before its colon", okLine + "Content-Length : 5\r\nConnection: close\r\n\r\nhello", `"hello" <nil>`, ""},
	{"no colon", okLine + "X-A\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"no name", okLine + ": a\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a zero byte", okLine + "X-A: a\x00b\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a coding and no chunks", okLine + "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a control character", okLine + "X-A: a\x01b\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a bare return", okLine + "X-A: a\rb\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a blank before the first name", okLine + " X-A: b\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"a status below 100", "HTTP/1.1 042 OK\r\nX-A: gone\r\nContent-Length: 5\r\n\r\nhello", "502 ", "gone"},
	{"another version", "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nhello", "", ""},
	{"no version", "200 OK\r\nContent-Length: 5\r\n\r\nhello", "502 ", "hello"},
	{"nothing", "", "502 ", ""},
	{"half a head", okLine + "Content-Le", "502 ", ""},
	{"a web socket, unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello", "502 ", "hello"},
	{"an unasked switch", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "502 ", ""},
}

// What a client hears does not depend on how its upstream is asked.
func TestAnswersEitherWay(t *testing.T) {
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			ways := eitherWay(t, newParrot(t, a.answer), "version: 1\nrules:\n  - { name: limited, match: /, per: everyone, limits: 1000/hour }\n")
			for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
				request := method + " / HTTP/1.1\r\nHost: example.com\r\n\r\n"
				direct, transport := heard(t, ways["direct"], request), heard(t, ways["transport"], request)
				if broken := a.hears == brokenOff && strings.Contains(direct, brokenOff) && strings.Contains(transport, brokenOff); direct != transport && !broken {
					t.Errorf("%s: heard directly\n%s\nthrough http.Transport\n%s", method, direct, transport)
				}
				if method == "GET" && (!strings.Contains(direct, a.hears) || a.silent != "" && strings.Contains(direct, a.silent)) {
					t.Errorf("heard, want %q, not %q:\n%s", a.hears, a.silent, direct)
				}
			}
		})
	}
}

// requests are what clients ask, without their end, and what the upstream gets and does not get of it.
var requests = []struct{ name, request, got, unseen string }{
	{"plain", "GET / HTTP/1.1\r\nHost: example.com", "Forwarded: for=127.0.0.1;host=example.com;proto=http", "User-Agent"},
	{"query", "GET /a?b=c;d&%zz&e=%41+f HTTP/1.1\r\nHost: example.com", "GET /a?b=c;d&%zz&e=%41+f HTTP/1.1\n", ""},
	{"an empty query", "GET /a? HTTP/1.1\r\nHost: example.com", "GET /a? HTTP/1.1\n", ""},
	{"escapes", "GET /a%20b%41%C3%A9 HTTP/1.1\r\nHost: example.com", "GET /a%20b%41%C3%A9 HTTP/1.1\n", ""},
	{"everything", "OPTIONS * HTTP/1.1\r\nHost: example.com", "OPTIONS * HTTP/1.1\n", ""},
	{"a whole URL", "GET http://example.com/a?b HTTP/1.1\r\nHost: example.com", "GET /a?b HTTP/1.1\n", ""},
	{"a port", "GET / HTTP/1.1\r\nHost: example.com:8080", "Host: example.com:8080", ""},
	{"a dot at the end", "GET / HTTP/1.1\r\nHost: Example.com.", "Host: Example.com.", ""},
	{"a whole URL without a path", "OPTIONS http://example.com HTTP/1.1\r\nHost: example.com", "OPTIONS / HTTP/1.1\n", ""},
	{"a whole URL of another host", "GET http://a.example/ HTTP/1.1\r\nHost: b.example", "Host: a.example", "b.example"},
	{"IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80", "Host: [::1]:80", ""},
	{"an agent", "GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: me", "User-Agent: me", ""},
	{"an empty agent", "GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent:", "", "User-Agent"},
	{"two agents", "GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: one\r\nUser-Agent: two", "User-Agent: one", "two"},
	{"several values", "GET / HTTP/1.1\r\nHost: example.com\r\nAccept: a\r\nX-A: b\r\naccept: c", "Accept: a\nAccept: c", ""},
	{"blanks", "GET / HTTP/1.1\r\nHost: example.com\r\nX-A: \t a  b \t\r\nX-B:", "X-A: a  b\nX-B: ", ""},
	{"bytes", "GET / HTTP/1.1\r\nHost: example.com\r\nX-A: caf\xe9", "X-A: caf\xe9", ""},
	{"no body, as it says", "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0", "", "Content-Length"},
	{"a post without a body", "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0", "Content-Length: 0", "Transfer-Encoding"},
	{"a delete without a body", "DELETE / HTTP/1.1\r\nHost: example.com", "", "Transfer-Encoding"},
	{"a body", "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello", "Content-Length: 5", ""},
	{"a get with a body", "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello", "Content-Length: 5", ""},
	{"compression", "GET / HTTP/1.1\r\nHost: example.com\r\nAccept-Encoding: br", "Accept-Encoding: br", ""},
	{"no compression", "GET / HTTP/1.1\r\nHost: example.com", "", "Accept-Encoding"},
	{"trailers are fine", "GET / HTTP/1.1\r\nHost: example.com\r\nTe: gzip, Trailers", "Te: trailers", "gzip"},
	{"another coding", "GET / HTTP/1.1\r\nHost: example.com\r\nTe: gone", "", "gone"},
	{"hop by hop", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: x-hop ,keep-alive\r\nX-Hop: gone\r\nKeep-Alive: timeout=gone\r\nProxy-Connection: gone\r\n" +
		"Proxy-Authorization: gone\r\nTrailer: gone\r\nX-Kept: 1", "X-Kept: 1", "gone"},
	{"hop by hop, in two lines", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nConnection: ,, ,X-HOP;,x-hop,\tx-tab\t\r\nX-Hop: gone\r\nX-Tab: gone\r\nX-Kept: 1", "X-Kept: 1", "gone"},
	{"hop by hop, of ours", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Host, Forwarded, X-Forwarded-For, User-Agent\r\nUser-Agent: gone", "Forwarded: for=127.0.0.1;host=example.com;proto=http\nHost: example.com\nX-Forwarded-For: 127.0.0.1", "gone"},
	{"a length that Connection lists", "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\nhello", "Content-Length: 5", ""},
	{"the last on its connection", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close", "", "Connection"},
	{"an offer without its connection", "GET / HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket", "", "pgrade"},
	{"another protocol", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA", "", "pgrade"},
	{"a protocol with other letters", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: web\u017focket", "", "pgrade"},
	{"a web socket", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: a", "Connection: Upgrade\n", ""},
	{"forwarding headers", "GET / HTTP/1.1\r\nHost: example.com\r\nX-Forwarded-For: gone\r\nForwarded: for=gone\r\nX-Real-Ip: gone\r\nX_Forwarded_For: gone\r\nX-Forwarded-Prefix: gone", "X-Forwarded-For: 127.0.0.1", "gone"},
}

// What an upstream gets does not depend on how it is asked.
func TestRequestsEitherWay(t *testing.T) {
	for _, q := range requests {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			up := newParrot(t, okLine+"Content-Length: 0\r\n\r\n")
			got := map[string]string{}
			ways := eitherWay(t, up, "")
			ways["traced"] = start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}, Tracer: tracing{}}, nil)
			for way, g := range ways {
				request := q.request
				if !strings.Contains(request, "\r\n\r\n") {
					request += "\r\n\r\n"
				}
				if said := heard(t, g, request); !strings.HasPrefix(said, "200 ") {
					t.Errorf("%s: %s", way, said)
				}
				got[way] = up.lastHead()
			}
			direct := got["direct"]
			if direct != got["transport"] || direct != got["traced"] {
				t.Errorf("sent directly\n%s\nthrough http.Transport\n%s\ntraced\n%s", direct, got["transport"], got["traced"])
			}
			if !strings.Contains(direct+"\n", q.got) || q.unseen != "" && strings.Contains(direct, q.unseen) {
				t.Errorf("sent, want %q, not %q:\n%s", q.got, q.unseen, direct)
			}
		})
	}
}

// The head of a stream, and each part of it, is at the client before the upstream sends more.
func TestStreamsAreNotDelayed(t *testing.T) {
	f := func(name, method string, length int) {
		t.Run(name, func(t *testing.T) {
			next := make(chan bool)
			g := before(t, "", func(w http.ResponseWriter, _ *http.Request) {
				if length > 0 {
					w.Header().Set("Content-Length", fmt.Sprint(length))
					w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
				} else {
					w.Header().Set("Content-Type", "x/y")
				}
				_ = http.NewResponseController(w).Flush()
				for range 3 {
					<-next
					_, _ = io.WriteString(w, "a")
					_ = http.NewResponseController(w).Flush()
				}
			})
			res, err := client.Do(newRequest(t, method, g.url, nil)) // it has the head
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			for range 3 {
				next <- true
				if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	f("chunks", "GET", 0)
	f("chunks through http.Transport", "POST", 0)
	f("events with a length", "GET", 3)
	f("events with a length through http.Transport", "POST", 3)
}

// An answer that breaks off does not look complete, in any version of HTTP.
func TestBrokenAnswersOverHTTP2(t *testing.T) {
	server, _ := certificate(t)
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	secure := &http.Client{Transport: tr}
	for _, answer := range []string{okLine + "Content-Length: 9\r\n\r\nhello", okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		g := start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+newParrot(t, answer).Addr().String())}}, server)
		for _, method := range []string{"GET", "POST"} {
			res, err := secure.Do(newRequest(t, method, g.url, nil))
			if err != nil { // nothing of it had been sent
				continue
			}
			if body, err := io.ReadAll(res.Body); err == nil || res.ProtoMajor != 2 {
				t.Errorf("%s: %q looks complete", method, body)
			}
			res.Body.Close()
		}
	}
}

// A tunnel is of the protocol that was asked for, however it is spelled, and either side can
// end its own half.
func TestTunnelHalves(t *testing.T) {
	g := before(t, "", func(w http.ResponseWriter, r *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: %s\r\nX-Request-Id: theirs\r\nContent-Length: 7\r\n\r\n", r.URL.Query().Get("to"))
		_ = buf.Flush()
		if r.URL.Query().Has("last") { // all of what the client sends comes before it
			all, _ := io.ReadAll(buf)
			_, _ = conn.Write(bytes.ToUpper(all))
			return
		}
		_, _ = io.WriteString(conn, "first")
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, buf)
	})
	open := func(query string) (net.Conn, *bufio.Reader, *http.Response) {
		t.Helper()
		conn := dial(t, g.addr)
		fmt.Fprint(conn, strings.Replace(handshake, "/ws", "/ws?"+query, 1))
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn, in, res
	}
	conn, in, res := open("to=WEBSOCKET&last")
	if ids := res.Header["X-Request-Id"]; res.StatusCode != 101 || len(ids) != 1 || ids[0] == "theirs" || res.Header.Get("Upgrade") != "WEBSOCKET" || res.Header.Get("Connection") != "upgrade" || res.Header.Get("Content-Length") != "" {
		t.Errorf("%s, %v", res.Status, res.Header)
	}
	fmt.Fprint(conn, "hello")
	_ = conn.(*net.TCPConn).CloseWrite()
	if all, err := io.ReadAll(in); string(all) != "HELLO" || err != nil {
		t.Errorf("after our end: %q, %v", all, err)
	}
	_, in, _ = open("to=websocket")
	if all, err := io.ReadAll(in); string(all) != "first" || err != nil {
		t.Errorf("after its end: %q, %v", all, err)
	}
	if _, _, res := open("to=chess"); res.StatusCode != http.StatusBadGateway {
		t.Errorf("another protocol: %s", res.Status)
	}
	soon(t, "nothing is in flight", func() bool { return g.InFlight() == 0 })
}

// The client's wish for its own connection does not cost one to the upstream.
func TestUpstreamConnectionsOutliveClients(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		var mu sync.Mutex
		peers := map[string]bool{}
		g := before(t, "", func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			peers[r.RemoteAddr] = true
		})
		const asked = 10
		for range asked {
			r := newRequest(t, method, g.url, nil)
			r.Close = true
			do(t, r)
			soon(t, "it is over", func() bool { return g.InFlight() == 0 })
		}
		mu.Lock()
		if len(peers) == asked {
			t.Errorf("%s: no connection was used again", method)
		}
		mu.Unlock()
	}
}

// What is left of a body is not read after the handler has returned, and closing it is for
// net/http.
func TestOnceBody(t *testing.T) {
	inner := strings.NewReader("hello")
	r := newRequest(t, "POST", "http://example.com/", inner)
	out := &outgoing{in: r}
	out.openBody()
	if out.body.wasRead.Load() {
		t.Error("it was read")
	}
	if n, err := out.body.Read(make([]byte, 2)); n != 2 || err != nil || !out.body.wasRead.Load() {
		t.Errorf("%d, %v", n, err)
	}
	if err := out.body.Close(); err != nil {
		t.Error(err)
	}
	out.end()
	if n, err := out.body.Read(make([]byte, 2)); n != 0 || err != errEnded || inner.Len() != 3 {
		t.Errorf("%d, %v after the end", n, err)
	}
	for _, none := range []io.Reader{nil, http.NoBody} {
		out := &outgoing{in: newRequest(t, "POST", "http://example.com/", none)}
		if out.openBody(); out.body != nil {
			t.Errorf("%v has a body", none)
		}
		out.end()
	}
}
