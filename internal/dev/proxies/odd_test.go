package proxies

import (
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A request that Tidegate cannot be asked about, because it is too large or too odd for the
// question, is not one that Tidegate was away for: it never passes uncounted.
func TestOddRequests(t *testing.T) {
	odd := oddRequests()
	each(t, func(t *testing.T, p proxy) {
		o, check := newOrigin(t), "127.0.0.1:"+testdep.FreePort(t)
		serveCheck(t, newFolder(t, twoPerMinute), check)
		addr := p.run(t, check, o.addr)
		refused := 0
		for name, request := range odd {
			c := newClient(t, addr)
			got := c.exchange(strings.Fields(request)[0], request)
			if arrived := o.reached(); len(arrived) > 0 {
				t.Errorf("%s: %d, reached the origin: %s %.100s", name, got.status, arrived[0].method, arrived[0].target)
			}
			if got.status >= 400 {
				refused++
			}
			c.close()
		}
		if refused < len(odd)/2 {
			t.Errorf("%d of %d requests were answered", refused, len(odd))
		}
	})
}

// oddRequests are requests of a route that is denied.
func oddRequests() map[string]string {
	head := func(lines ...string) string {
		return strings.Join(append([]string{"Host: example.com"}, lines...), "\r\n")
	}
	odd := map[string]string{
		"HTTP/0.9":        "GET /denied/x\r\n",
		"HTTP/1.0":        "GET /denied/x HTTP/1.0\r\n\r\n",
		"HTTP/1.0 kept":   "GET /denied/x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"no host":         "GET /denied/x HTTP/1.1\r\nHost:\r\n\r\n",
		"two hosts":       "GET /denied/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"odd host":        "GET /denied/x HTTP/1.1\r\nHost: a_b:99999\r\n\r\n",
		"another host":    "GET http://other/denied/x HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"whole URL":       "GET http://example.com/denied/x HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"lower case":      "get /denied/x HTTP/1.1\r\n" + head() + "\r\n\r\n",
		"own method":      "PURGE /denied/x HTTP/1.1\r\n" + head() + "\r\n\r\n",
		"trace":           "TRACE /denied/x HTTP/1.1\r\n" + head() + "\r\n\r\n",
		"connect":         "CONNECT example.com:80 HTTP/1.1\r\n" + head() + "\r\n\r\n",
		"websocket":       "GET /denied/x HTTP/1.1\r\n" + head("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==") + "\r\n\r\n",
		"h2c":             "GET /denied/x HTTP/1.1\r\n" + head("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__") + "\r\n\r\n",
		"expect":          "POST /denied/x HTTP/1.1\r\n" + head("Expect: 100-continue", "Content-Length: 5") + "\r\n\r\nhello",
		"expect nonsense": "GET /denied/x HTTP/1.1\r\n" + head("Expect: nonsense") + "\r\n\r\n",
		"ranges":          "GET /denied/x HTTP/1.1\r\n" + head("Range: bytes=0-1", "If-None-Match: *", "If-Modified-Since: Mon, 16 Nov 2026 00:00:00 GMT") + "\r\n\r\n",
		"te":              "GET /denied/x HTTP/1.1\r\n" + head("TE: trailers", "Connection: TE, close") + "\r\n\r\n",
		"body of GET":     "GET /denied/x HTTP/1.1\r\n" + head("Content-Length: 5") + "\r\n\r\nhello",
		"chunked":         "POST /denied/x HTTP/1.1\r\n" + head("Transfer-Encoding: chunked") + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"odd value":       "GET /denied/x HTTP/1.1\r\n" + head("X-Odd: \xff\x80\xe4 \t\"") + "\r\n\r\n",
		"control":         "GET /denied/x HTTP/1.1\r\n" + head("X-Odd: a\x01b") + "\r\n\r\n",
		"zero":            "GET /denied/x HTTP/1.1\r\n" + head("X-Odd: a\x00b") + "\r\n\r\n",
		"odd name":        "GET /denied/x HTTP/1.1\r\n" + head("X!#$%&'*+-.^_`|~: a") + "\r\n\r\n",
		"underscores":     "GET /denied/x HTTP/1.1\r\n" + head("X_ORIGINAL_URI: /free", "X-Original_URI: /free") + "\r\n\r\n",
		"no value":        "GET /denied/x HTTP/1.1\r\n" + head("X-Empty:", "X-Original-URI:", "X-Forwarded-Uri:", "X-Forwarded-Host:") + "\r\n\r\n",
		"deny":            "GET /denied/x?deny=503 HTTP/1.1\r\n" + head() + "\r\n\r\n",
		"deny 200":        "GET /denied/x?deny=200 HTTP/1.1\r\n" + head() + "\r\n\r\n",
		"query":           "GET /denied/x?a=%zz&b=\"<>;c HTTP/1.1\r\n" + head() + "\r\n\r\n",
	}
	for _, size := range []int{1, 4, 7, 8, 12, 14, 15, 16, 20, 30, 31, 40, 60, 64, 100, 300, 900, 2000} {
		odd[fmt.Sprintf("header of %d KB", size)] = "GET /denied/x HTTP/1.1\r\n" + head("X-Long: "+strings.Repeat("a", size<<10)) + "\r\n\r\n"
		odd[fmt.Sprintf("target of %d KB", size)] = "GET /denied/" + strings.Repeat("a", size<<10) + " HTTP/1.1\r\n" + head() + "\r\n\r\n"
		odd[fmt.Sprintf("query of %d KB", size)] = "GET /denied/x?" + strings.Repeat("a", size<<10) + " HTTP/1.1\r\n" + head() + "\r\n\r\n"
		odd[fmt.Sprintf("headers of %d KB", size)] = "GET /denied/x HTTP/1.1\r\n" + head() + strings.Repeat("\r\nX-Many: "+strings.Repeat("a", 1000), size) + "\r\n\r\n"
	}
	for bytes := 14_000; bytes < 16_500; bytes += 100 { // about the size of HAProxy's buffers
		odd[fmt.Sprintf("header of %d bytes", bytes)] = "GET /denied/x HTTP/1.1\r\n" + head("X-Long: "+strings.Repeat("a", bytes)) + "\r\n\r\n"
	}
	for _, lines := range []int{50, 90, 99, 100, 101, 120, 128, 129, 200, 1000, 5000} {
		odd[fmt.Sprintf("%d lines", lines)] = "GET /denied/x HTTP/1.1\r\n" + head() + strings.Repeat("\r\nX-Many: a", lines) + "\r\n\r\n"
		var own strings.Builder
		for i := range lines {
			fmt.Fprintf(&own, "\r\nX-Many-%d: a", i)
		}
		odd[fmt.Sprintf("%d names", lines)] = "GET /denied/x HTTP/1.1\r\n" + head() + own.String() + "\r\n\r\n"
	}
	return odd
}
