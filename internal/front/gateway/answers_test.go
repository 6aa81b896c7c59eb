package gateway

import (
	"strings"
	"testing"
)

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
			gateways := eitherWay(t, newParrot(t, a.answer), "version: 1\nrules:\n  - { name: limited, match: /, per: everyone, limits: 1000/hour }\n")
			for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
				request := method + " / HTTP/1.1\r\nHost: example.com\r\n\r\n"
				direct, transport := heard(t, gateways["direct"], request), heard(t, gateways["transport"], request)
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
