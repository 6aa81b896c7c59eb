package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/telemetry/accesslog"
)

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

// tracing is a Tracer that passes on a header of its own.
type tracing struct{ Span }

func (tracing) Begin(*http.Request, bool, time.Time) Span { return tracing{} }
func (tracing) ID() string                                { return "" }
func (tracing) Deciding()                                 {}
func (tracing) Decided(*accesslog.Record)                 {}
func (tracing) Forward(_ string, h http.Header)           { h["Traceparent"] = []string{"ours"} }
func (tracing) Tried(Try)                                 {}
func (tracing) End(*accesslog.Record)                     {}

// What an upstream gets does not depend on how it is asked.
func TestRequestsEitherWay(t *testing.T) {
	for _, q := range requests {
		t.Run(q.name, func(t *testing.T) {
			t.Parallel()
			up := newParrot(t, okLine+"Content-Length: 0\r\n\r\n")
			got := map[string]string{}
			gateways := eitherWay(t, up, "")
			gateways["traced"] = start(t, Options{Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())}, Tracer: tracing{}}, nil)
			for way, g := range gateways {
				request := q.request
				if !strings.Contains(request, "\r\n\r\n") {
					request += "\r\n\r\n"
				}
				if reply := heard(t, g, request); !strings.HasPrefix(reply, "200 ") {
					t.Errorf("%s: %s", way, reply)
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
