package checkapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
	"tidegate.dev/tidegate/internal/front/desk"
)

const site = `
identify: { user: jwt.sub, key: client header X-Api-Key, name: body.name, cn: tls.client_cn }
rules:
  - { name: site, match: /api/, per: ip, limits: 2/hour }
  - { name: posts, match: POST /posts, per: ip, limits: 1/hour }
  - { name: shop, match: shop.example/, per: ip, limits: 1/hour }
  - { name: private, match: /private/, deny: true }
  - { name: keys, match: /keys, per: key, limits: 1/hour }
  - { name: soft, match: /soft, per: ip, limits: 1/hour, over: { soft: 100% } }
  - { name: login, match: /login, per: ip, limits: 1/hour, count: { status: 401 } }
  - { name: line, match: /line, per: ip, limits: { rate: 1/minute, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 5m } }
  - { name: names, match: /names, per: name, limits: 1/hour }
  - { name: teapot, match: /tea, per: ip, limits: 1/hour, respond: { status: 418, message: "No tea." } }
  - { name: huge, match: /huge, per: ip, limits: 1/hour, cost: { reserve: query n, else: 1, max: 9 } }
`

// asProxy are the headers of Traefik and Caddy, for a request from a client.
func asProxy(method, uri string, more ...string) []string {
	return append([]string{"X-Forwarded-Method: " + method, "X-Forwarded-Uri: " + uri, "X-Forwarded-Host: site.example", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"}, more...)
}

func forward(t testing.TB, s http.Handler, query string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, s, "GET", forwardAuth+query, "", headers...)
}

func TestForwardAuth(t *testing.T) {
	s := newServer(t, site, nil)
	f := func(headers []string, status int, word, has string) {
		t.Helper()
		w := forward(t, s, "", headers...)
		if w.Code != status || w.Header().Get(decisionHeader) != word {
			t.Errorf("%q: %d %q, want %d %s\n%s", headers, w.Code, w.Header(), status, word, w.Body)
		}
		if all := fmt.Sprint(w.Header()) + w.Body.String(); !strings.Contains(all, has) {
			t.Errorf("%q: %s has no %q", headers, all, has)
		}
	}
	get := func(uri string, more ...string) []string { return asProxy("GET", uri, more...) }
	f(get("/api/x"), 204, "allowed", `Ratelimit:["site";r=1;t=`)
	f(get("/api/x?a=b"), 204, "allowed", `Ratelimit-Policy:["site";q=2;w=3600]`)
	f(get("/api/x"), 429, "limited", `Retry-After:[`)
	f(get("/api/x"), 429, "limited", `"violated-policies":["site"]`)
	f(get("/api/x", "Accept: text/plain"), 429, "limited", `is used up`)
	f(append([]string{"X-Forwarded-For: 192.0.2.7"}, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /api/x"), 204, "allowed", "")
	f(get("/other"), 204, "allowed", "")
	f(get("/private/x"), 403, "denied", "private does not allow")
	f(get("/posts"), 204, "allowed", "")
	f(asProxy("POST", "/posts"), 204, "allowed", `"posts";r=0`)
	f(asProxy("POST", "/posts"), 429, "limited", "")
	f([]string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Forwarded-Host: shop.example:443", "X-Forwarded-For: 192.0.2.1"}, 204, "allowed", `"shop";r=0`)
	f(get("/soft"), 204, "allowed", "")
	f(get("/soft"), 204, "allowed", "X-Ratelimit-Soft:[true]")
	f(get("/soft"), 429, "limited", "")
	f(get("/tea"), 204, "allowed", "")
	f(get("/tea"), 418, "limited", "No tea.")
	f(get("/huge?n=5"), 429, "limited", "can ever admit")
	// A client header is the end client's.
	f(get("/keys", "X-Api-Key: a"), 204, "allowed", `"keys";r=0`)
	f(get("/keys", "X-Api-Key: b"), 204, "allowed", `"keys";r=0`)
	f(get("/keys", "X-Api-Key: a"), 429, "limited", "")
	// The answer is not seen: it counts. Nobody waits: the wait is told.
	f(get("/login"), 204, "allowed", "")
	f(get("/login"), 429, "limited", "")
	f(get("/line"), 204, "allowed", "")
	f(get("/line"), 429, "limited", "Retry-After:[60]")
	// There is no body: whoever would be counted by it is counted by address.
	f(get("/names"), 204, "allowed", `"names";r=0`)
	f(get("/names"), 429, "limited", "")
}

// What the proxy says in one of its ways is the same question.
func TestForwardAuthWays(t *testing.T) {
	f := func(target string, headers ...string) {
		t.Helper()
		s := newServer(t, site, nil)
		for i, want := range []int{204, 429} {
			for _, method := range []string{"POST", "GET"}[:1+min(i, 0)] {
				if !strings.HasPrefix(target, forwardAuth+"/") {
					method = "GET" // as nginx asks, whatever is asked about
				}
				if w := ask(t, s, method, target, "", headers...); w.Code != want {
					t.Errorf("%s %q, number %d: %d %s", target, headers, i+1, w.Code, w.Body)
				}
			}
		}
	}
	f(forwardAuth, "X-Forwarded-Method: POST", "X-Forwarded-Uri: /posts", "X-Forwarded-For: 192.0.2.1")
	f(forwardAuth, "X-Original-Method: POST", "X-Original-URI: /posts", "X-Forwarded-For: 192.0.2.1")
	f(forwardAuth, "X-Original-Method: POST", "X-Original-URL: https://site.example/posts?x", "X-Forwarded-For: 192.0.2.1")
	f(forwardAuth, "X-Original-Method: POST", "X-Original-URL: /posts", "X-Forwarded-For: 192.0.2.1")
	f(forwardAuth, "X-Original-Method: POST", "X-Original-URL: https://site.example:8443/posts", "X-Forwarded-Host: Site.example", "X-Forwarded-Uri: /posts", "X-Forwarded-Method: POST")
	f(forwardAuth+"/posts", "Host: site.example", "X-Forwarded-For: 192.0.2.1")
	f(forwardAuth+"/posts?deny=200", "Host: site.example", "X-Forwarded-For: 192.0.2.1") // the client's own query
}

// The status of every refusal can be chosen.
func TestForwardAuthDeny(t *testing.T) {
	s := newServer(t, site, nil)
	f := func(query string, headers []string, status int, word string) {
		t.Helper()
		w := forward(t, s, query, headers...)
		if w.Code != status || w.Header().Get(decisionHeader) != word {
			t.Errorf("%s %q: %d %q, want %d %s", query, headers, w.Code, w.Header().Get(decisionHeader), status, word)
		}
		if status != 204 && !strings.Contains(w.Body.String(), fmt.Sprintf(`"status":%d`, status)) {
			t.Errorf("%s", w.Body)
		}
	}
	post := asProxy("POST", "/posts")
	f("?deny=403", post, 204, "allowed")
	f("?deny=403", post, 403, "limited")
	f("?deny=401", post, 401, "limited")
	f("?deny=404", asProxy("GET", "/private/"), 404, "denied")
	f("?deny=403", asProxy("GET", "/a/../b"), 403, "denied")
	f("?deny=403", asProxy("get", "/a"), 403, "denied")
	f("?deny=403", nil, 403, "denied")
	for _, bad := range []string{"?deny=200", "?deny=302", "?deny=399", "?deny=500", "?deny=503", "?deny=599", "?deny=600", "?deny=", "?deny=4o3", "?deny=0403", "?deny=403&x", "?x", "?deny=403&deny=401", "?DENY=403"} {
		f(bad, post, 400, "denied")
	}
}

// Only proxies are believed. Of everybody else nothing is limited in place of what they say.
func TestForwardAuthTrust(t *testing.T) {
	logged := new(strings.Builder)
	s := newServer(t, site, func(o *Options) {
		o.Token = func() string { return secret }
		o.Log = slog.New(slog.NewTextHandler(logged, nil))
		o.Certificates, o.Unix = true, true
	})
	api := asProxy("GET", "/api/x")
	f := func(want int, headers ...string) {
		t.Helper()
		if w := forward(t, s, "", headers...); w.Code != want || want == 403 && w.Header().Get(decisionHeader) != "denied" {
			t.Errorf("%q: %d %s, want %d", headers, w.Code, w.Body, want)
		}
	}
	far := append(api, "Peer: 198.51.100.1:999")
	f(403, far...)
	f(403, append(far, "X-Tidegate-Token: wrong")...)
	f(403, append(far, "X-Tidegate-Token: ")...)
	f(403, append(far, "X-Tidegate-Token: "+secret, "X-Tidegate-Token: "+secret)...)
	f(403, append(far, "Authorization: Bearer "+secret)...) // that is the end client's
	f(403, append(api, "X-Tidegate-Token: wrong")...)
	f(204, append(far, "X-Tidegate-Token: "+secret)...)
	f(204, api...)
	f(429, api...) // both were the client 192.0.2.1
	// Beyond the proxy only proxies are believed.
	f(204, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /api/x", "X-Forwarded-For: 192.0.2.1, 192.0.2.9")
	f(204, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /api/x", "X-Forwarded-For: 192.0.2.3, 192.0.2.9")
	f(429, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /api/x", "X-Forwarded-For: 192.0.2.4, 192.0.2.9, 127.0.0.1")
	if strings.Contains(logged.String(), "X-Forwarded-For") {
		t.Error(logged)
	}
	for range 2 {
		f(204, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /api/x")
	}
	if n := strings.Count(logged.String(), "without X-Forwarded-For"); n != 1 {
		t.Errorf("told %d times: %s", n, logged)
	}
	r := overUnix(httptest.NewRequest("GET", forwardAuth+"/api/x", nil))
	if w := serve(t, s, r); w.Code != 204 {
		t.Errorf("by a Unix socket: %d %s", w.Code, w.Body)
	}
}

// Whoever says two different things is refused: one of them may be the client's.
func TestForwardAuthContradiction(t *testing.T) {
	s := newServer(t, site, nil)
	f := func(target string, headers ...string) {
		t.Helper()
		w := ask(t, s, "POST", target, "", append(headers, "X-Forwarded-For: 192.0.2.1")...)
		if w.Code != 400 || w.Header().Get(decisionHeader) != "denied" {
			t.Errorf("%s %q: %d %s", target, headers, w.Code, w.Body)
		}
	}
	const get, x = "X-Forwarded-Method: GET", "X-Forwarded-Uri: /x"
	f(forwardAuth)
	f(forwardAuth, get)
	f(forwardAuth, x)
	f(forwardAuth, "X-Original-URI: /x")
	f(forwardAuth, get, x, "X-Original-URI: /y")
	f(forwardAuth, get, x, "X-Forwarded-Uri: /y")
	f(forwardAuth, get, "X-Original-URI: /x", "X-Original-URI: /x?")
	f(forwardAuth, get, x, "X-Original-URL: http://h/y")
	f(forwardAuth, get, x, "X-Original-URL: http://h/x", "X-Original-URL: http://i/x")
	f(forwardAuth, get, "X-Original-URL: http://h/x", "X-Forwarded-Host: i")
	f(forwardAuth, get, "X-Original-URL: http://h", "X-Forwarded-Host: h")
	f(forwardAuth, get, "X-Original-URL: http://u@h/x")
	f(forwardAuth, get, "X-Original-URL: x")
	f(forwardAuth, get, x, "X-Original-Method: POST")
	f(forwardAuth, get, x, "X-Forwarded-Method: POST")
	f(forwardAuth, get, x, "X-Forwarded-Host: a", "X-Forwarded-Host: b")
	f(forwardAuth, get, x, "X-Forwarded-Host: a, b")
	f(forwardAuth, get, "X-Forwarded-Uri: x")
	f(forwardAuth, get, "X-Forwarded-Uri: http://h/x")
	f(forwardAuth, get, "X-Forwarded-Uri: ?x")
	f(forwardAuth+"/x", "X-Forwarded-Uri: /y")
	f(forwardAuth+"/x", "X-Original-URI: /")
	f(forwardAuth+"/x", "X-Forwarded-Method: GET")
	f(forwardAuth+"/x", "X-Forwarded-Host: elsewhere")
	f(forwardAuth+"/", "X-Forwarded-Uri: /y", "X-Forwarded-Method: POST")
}

// answersLate is a store that answers when nobody waits any more.
type answersLate struct{}

func (answersLate) Take(ctx context.Context, _ []tidegate.Check, _ int) (tidegate.Decision, error) {
	<-ctx.Done()
	return tidegate.Decision{}, ctx.Err()
}

func (answersLate) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error {
	return errors.New("not here")
}

// There is an answer by the deadline, whatever the store does.
func TestForwardAuthDeadline(t *testing.T) {
	set := parseRules(t, site)
	s := New(Options{Desk: desk.New(tidegate.NewGate(set, answersLate{})), HTTP: httplimit.Options{ClientIP: httplimit.ClientIP{TrustUnix: true}}, Deadline: 20 * time.Millisecond, Unix: true})
	for _, target := range []string{forwardAuth + "/api/x", "/v1/check"} {
		r := overUnix(httptest.NewRequest("POST", target, strings.NewReader(`{"path":"/api/x"}`)))
		done := make(chan *httptest.ResponseRecorder, 1)
		go func() { done <- serve(t, s, r) }()
		select {
		case w := <-done:
			if w.Code != 503 && w.Code != 200 || w.Header().Get(decisionHeader) != "limited" {
				t.Errorf("%s: %d %q %s", target, w.Code, w.Header(), w.Body)
			}
		case <-time.After(time.Minute):
			t.Fatal("no answer")
		}
	}
}
