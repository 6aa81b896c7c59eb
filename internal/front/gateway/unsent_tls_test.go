package gateway

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// brokenTLS are servers with whom a handshake fails, each in its own way.
var brokenTLS = map[string]func(net.Conn){
	"closes at once": func(net.Conn) {},
	"resets at once": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
	"closes after the hello": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
	},
	"resets after the hello": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_ = c.(*net.TCPConn).SetLinger(0)
	},
	"is silent": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	"speaks plain HTTP": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	},
	"refuses": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 40}) // a fatal alert: handshake_failure
		_, _ = io.Copy(io.Discard, c)
	},
	"says half a hello": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write([]byte{22, 3, 3, 1, 0, 2, 0})
	},
}

// A TLS handshake with an upstream that fails, however it does, is before anything of the
// request is sent: what was charged is given back, and another upstream is asked.
func TestFailedHandshakesAreGivenBack(t *testing.T) {
	t.Parallel()
	const connectTimeout = 300 * time.Millisecond
	for name, serve := range brokenTLS {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdep.Undisturbed(t, connectTimeout/4, func(t testing.TB) {
				up := rawUpstream(t, serve)
				good := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				defer good.Close()
				o := Options{Gate: gateOf(t, allLaws), Upstreams: []*url.URL{parseURL(t, "https://"+up.Addr().String())}}
				o.Transport = Transport{TLS: &tls.Config{InsecureSkipVerify: true}, Connect: connectTimeout}
				ask := func(g running, method, path string) int {
					t.Helper()
					var body io.Reader
					if method == http.MethodPost {
						body = strings.NewReader("body")
					}
					res, _ := do(t, newRequest(t, method, g.url+path, body))
					return res.StatusCode
				}
				alone := start(t, o, nil)
				paths := laws
				if name == "is silent" {
					paths = laws[:2]
				}
				for _, law := range paths {
					for _, method := range []string{"GET", "POST", "DELETE", "GET", "POST"} {
						if got := ask(alone, method, "/"+law); got != http.StatusBadGateway && got != http.StatusGatewayTimeout {
							t.Errorf("%s /%s: %d", method, law, got)
						}
					}
				}
				o.Upstreams = append(o.Upstreams, parseURL(t, good.URL))
				both := start(t, o, nil)
				for i := range 10 {
					method := []string{"GET", "POST", "DELETE"}[i%3]
					if got := ask(both, method, fmt.Sprint("/elsewhere", i)); got != http.StatusOK {
						t.Errorf("%s, and another upstream works: %d", method, got)
					}
				}
			})
		})
	}
}
