package checkapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The same over real connections, in HTTP/1.1 and HTTP/2.
func TestOverConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", http2), func(t *testing.T) {
			server := httptest.NewUnstartedServer(newServer(t, site, nil))
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			f := func(method, target, body string, want int, word string, headers ...string) {
				t.Helper()
				r, err := http.NewRequest(method, server.URL+target, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range headers {
					name, value, _ := strings.Cut(h, ": ")
					r.Header.Add(name, value)
				}
				res, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != want || res.Header.Get(decisionHeader) != word || (res.ProtoMajor == 2) != http2 {
					t.Errorf("%s %s: %d %q %s %v, want %d %s", method, target, res.StatusCode, res.Header, text, err, want, word)
				}
			}
			for range 2 {
				f("POST", "/v1/check", `{"path":"/api/x","ip":"192.0.2.1"}`, 200, "allowed")
			}
			f("POST", "/v1/check", `{"path":"/api/x","ip":"192.0.2.1"}`, 200, "limited")
			f("GET", forwardAuth, "", 429, "limited", asProxy("GET", "/api/x")...)
			f("HEAD", forwardAuth, "", 429, "limited", asProxy("GET", "/api/x")...)
			f("GET", forwardAuth, "", 204, "allowed", asProxy("GET", "/other")...)
			f("POST", forwardAuth+"/posts", "a body that nobody reads", 204, "allowed", "X-Forwarded-For: 192.0.2.1")
			f("POST", forwardAuth+"/posts", "a body that nobody reads", 429, "limited", "X-Forwarded-For: 192.0.2.1")
			f("GET", forwardAuth+"/private/x", "", 403, "denied")
			f("GET", forwardAuth+"//private/x", "", 400, "denied")
			f("PUT", "/v1/check", `{}`, 405, "")
		})
	}
}

// Targets that no client library would send arrive as they are.
func TestRawTargets(t *testing.T) {
	server := httptest.NewServer(newServer(t, site, nil))
	defer server.Close()
	for _, suffix := range []string{"/private/", "//private/", "/a/../private/", "/%2e%2e/private/", "/private/..", `/\private/`, "/private/#", "/;x/private/", "/a%2f..%2fprivate/", "/./private/x", "/private%2f"} {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: site.example\r\n\r\n", forwardAuth, suffix)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode < 400 {
			t.Errorf("%s: %d %q", suffix, res.StatusCode, res.Header)
		}
		_ = c.Close()
	}
}
