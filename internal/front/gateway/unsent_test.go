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
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// allLaws are rules of every algorithm, one that counts by status, one with an
// estimate, one that waits and one that is soft: each admits three an hour and is
// met at a path of its own.
const allLaws = `
version: 1
rules:
  - { name: bucket, match: /bucket, per: ip, limits: { rate: 3/hour, algorithm: token_bucket } }
  - { name: log, match: /log, per: ip, limits: { rate: 3/hour, algorithm: sliding_log } }
  - { name: parts, match: /parts, per: ip, limits: { rate: 3/hour, algorithm: sub_windows } }
  - { name: window, match: /window, per: ip, limits: { rate: 3/hour, algorithm: fixed_window } }
  - { name: two, match: /two, per: ip, limits: { rate: 3/hour, algorithm: sliding_window } }
  - { name: quota, match: /quota, per: ip, quota: 3/year }
  - { name: several, match: /several, per: ip, limits: [3/hour, 100/day], quota: 1000/year, candidate: 2/hour }
  - { name: status, match: /status, per: ip, limits: 3/hour, count: { status: [401] } }
  - { name: estimate, match: /estimate, per: ip, limits: 3/hour, cost: { reserve: header X-Cost, else: 1, settle: response.header.X-Cost } }
  - { name: slots, match: /slots, per: ip, limits: 3/hour, concurrency: { slots: 5, lease: 30s } }
  - { name: soft, match: /soft, per: ip, limits: 2/hour, over: { soft: 50% } }
`

var laws = []string{"bucket", "log", "parts", "window", "two", "quota", "several", "status", "estimate", "slots", "soft"}

// What never reached an upstream is given back: a client comes to an upstream that is
// back with all that it had, whatever the algorithm, the method, and the protocols.
func TestUnsentRequestsAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %t", scheme, http2), func(t *testing.T) {
				t.Parallel()
				u, listen := heldURL(t)
				u.Scheme = scheme
				served, authorities := certificate(t)
				config, _ := certificate(t)
				g := start(t, Options{
					Gate: gateOf(t, allLaws), Upstreams: []*url.URL{u}, Transport: Transport{TLS: &tls.Config{RootCAs: authorities, ServerName: "example.com"}},
				}, config)
				tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols)}
				tr.Protocols.SetHTTP1(!http2)
				tr.Protocols.SetHTTP2(http2)
				defer tr.CloseIdleConnections()
				ask := func(method, law string) int {
					t.Helper()
					var body io.Reader
					if method == http.MethodPost {
						body = strings.NewReader("body")
					}
					res, err := (&http.Client{Transport: tr}).Do(newRequest(t, method, g.url+"/"+law, body))
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
					return res.StatusCode
				}
				for _, law := range laws {
					for _, method := range []string{"GET", "POST", "DELETE", "GET", "POST", "DELETE"} {
						if got := ask(method, law); got != http.StatusBadGateway && got != http.StatusServiceUnavailable {
							t.Errorf("%s /%s before a dead upstream: %d", method, law, got)
						}
					}
				}
				l := listen()
				if scheme == "https" {
					l = tls.NewListener(l, served)
				}
				back := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/status" {
						w.WriteHeader(http.StatusUnauthorized)
					}
				})}
				go func() { _ = back.Serve(l) }()
				defer back.Close()
				soon(t, "the upstream is used again", func() bool { return ask("GET", "elsewhere") == http.StatusOK })
				for _, law := range laws {
					for i := range 4 {
						got := ask("GET", law)
						if refused := got == http.StatusTooManyRequests; refused != (i == 3) {
							t.Errorf("/%s, request %d to the upstream: %d", law, i+1, got)
						}
					}
				}
			})
		}
	}
}

// What may have reached an upstream stays charged: a connection that breaks, an
// answer that is not HTTP, or none in time. The status of our own is not the
// upstream's: a password may have been tried.
func TestSentRequestsStayCharged(t *testing.T) {
	t.Parallel()
	const upstreamTimeout = 50 * time.Millisecond
	for name, talk := range map[string]func(conn net.Conn){
		"closed after the head": func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) },
		"not HTTP": func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "SSH-2.0-x\r\n\r\n")
		},
		"silent": func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdep.Undisturbed(t, upstreamTimeout/4, func(t testing.TB) {
				up := rawUpstream(t, talk)
				g := start(t, Options{
					Gate: gateOf(t, allLaws), Upstreams: []*url.URL{parseURL(t, "http://"+up.Addr().String())},
					Limits: Limits{Upstream: upstreamTimeout}, Health: Health{UnhealthyAfter: 1000},
				}, nil)
				for _, law := range laws {
					for i := range 4 {
						method := []string{"GET", "POST"}[i%2]
						res, _ := do(t, newRequest(t, method, g.url+"/"+law, strings.NewReader("")))
						if refused := res.StatusCode == http.StatusTooManyRequests; refused != (i == 3) {
							t.Errorf("%s /%s, request %d: %s", method, law, i+1, res.Status)
						}
					}
				}
			})
		})
	}
}

// A request that went out over a connection which broke then, and cannot be sent
// again as nobody listens any more, may have been served.
func TestSentBeforeTheUpstreamDiedStaysCharged(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %t", secure), func(t *testing.T) {
			var dying atomic.Bool
			var s *httptest.Server
			s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if dying.Load() {
					_ = s.Listener.Close()
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					_ = conn.Close()
				}
			}))
			s.Start()
			if secure {
				s.Close()
				s = httptest.NewUnstartedServer(s.Config.Handler)
				s.StartTLS()
			}
			defer s.Close()
			o := Options{Gate: gateOf(t, "version: 1\nrules: [{ name: api, per: ip, limits: 2/hour }]\n"), Upstreams: []*url.URL{parseURL(t, s.URL)}}
			o.Transport.TLS = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
			g := start(t, o, nil)
			want := func(status int) {
				t.Helper()
				if res, _ := get(t, g.url); res.StatusCode != status {
					t.Errorf("%s, want %d", res.Status, status)
				}
			}
			want(http.StatusOK) // leaves a connection
			dying.Store(true)
			want(http.StatusBadGateway)
			want(http.StatusTooManyRequests)
		})
	}
}
