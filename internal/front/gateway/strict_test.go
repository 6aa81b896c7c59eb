package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// In HTTP/2 a target and a method may be any bytes; in the request line of an upstream
// they must not be. What is refused is refused with 400, or ends its stream.
func TestHTTP2SaysNothingThatHTTP1Cannot(t *testing.T) {
	var mu sync.Mutex
	var got []string
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Method+" "+r.RequestURI)
	}))
	t.Cleanup(upstream.Close)
	config, _ := certificate(t)
	g := start(t, Options{Upstreams: []*url.URL{parseURL(t, upstream.URL)}}, config)
	const status200, status400 = 0x80 | 8, 0x80 | 12 // as the static table of HPACK has them
	f := func(method, path string, want byte) {
		t.Helper()
		c := dialH2Wire(t, g.addr)
		defer c.conn.Close()
		c.send(method, path, nil, "")
		head, _ := c.answered()
		mu.Lock()
		reached := strings.Join(got, ", ")
		got = nil
		mu.Unlock()
		switch {
		case want == status200 && reached != method+" "+path:
			t.Errorf("%q %q arrived as %q", method, path, reached)
		case want != status200 && reached != "":
			t.Errorf("%q %q arrived as %q", method, path, reached)
		case len(head) > 0 && head[0] != want:
			t.Errorf("%q %q: the head of the answer begins with %d, want %d", method, path, head[0], want)
		}
	}
	for _, target := range []string{
		"/a?x y", "/a? HTTP/1.1", "/a?x\ty", "/a?x\x00", "/a?x\x7f", "/a?x\r\nX-A: b", "/a?\n", "/a b", "/a\tb", "/ ", "/a#b c",
		"//a", "/a//b", "http://example.com/a", "https://example.com/a?b", "a", "*", "*/a", "?a", "", "/a/../b", "/%2e", `/a\b`, "/%zz", "/%", "/%00",
	} {
		f("GET", target, status400)
	}
	for _, method := range []string{"G ET", "GET ", " GET", "G\tET", "G\r\nET", "GET\x00", "G\xc3\x89T", "(GET)", "G,ET", "get", "Get", "G/ET", "GET:", ""} {
		f(method, "/a", status400)
		f(method, "/a?b c", status400)
	}
	f("GET", "/a?b=c&d=%20+", status200)
	f("GET", "/a?\xc3\xa4|{}", status200)
	f("PURGE", "/a", status200)
	f("M-SEARCH", "/a", status200)
	f("GET", "/;a", status200)
}
