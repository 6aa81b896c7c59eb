package checkapi

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/store/memory"
)

const usageRules = `
identify: { user: client header X-User, id: "path {id}" }
rules:
  - { name: site, per: ip, limits: 100/hour }
  - { name: posts, match: POST /posts, per: user, limits: 10/hour }
  - { name: search, match: /search, per: ip, limits: { rate: 2/minute, algorithm: token_bucket }, over: { soft: 50% } }
  - { name: item, match: "/items/{id}", per: id, limits: 5/hour }
  - { name: slots, match: /render, per: ip, concurrency: { slots: 3, lease: 30s } }
  - { name: plan, match: /api/, per: ip, quota: 1000/day }
  - { name: login, match: /login, per: ip, limits: 1/hour, block: 10m }
  - { name: private, match: /private, deny: true }
`

type used struct {
	Limits []struct {
		Rule       string  `json:"rule"`
		Limit      int64   `json:"limit"`
		Period     float64 `json:"period"`
		Used       int64   `json:"used"`
		Remaining  int64   `json:"remaining"`
		RetryAfter float64 `json:"retry_after"`
		ResetAfter float64 `json:"reset_after"`
		Blocked    bool    `json:"blocked"`
	}
}

func (u *used) String() string {
	var all []string
	for _, l := range u.Limits {
		text, _ := json.Marshal([]int64{l.Used, l.Remaining, l.Limit})
		if l.Blocked {
			text = append(text, '!')
		}
		all = append(all, l.Rule+string(text))
	}
	return strings.Join(all, " ")
}

// A caller sees where it stands, as often as it likes.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, usageRules, func(o *Options) { o.Token = func() string { return secret } })
		look := func(w *httptest.ResponseRecorder) string {
			t.Helper()
			var u used
			if err := json.Unmarshal(w.Body.Bytes(), &u); err != nil || w.Code != 200 {
				t.Fatalf("%v: %d %s", err, w.Code, w.Body)
			}
			return u.String()
		}
		f := func(question, query, want string) {
			t.Helper()
			for range 2 {
				if got := look(ask(t, s, "POST", "/v1/usage", question, "X-Tidegate-Token: "+secret)); got != want {
					t.Errorf("%s: %s, want %s", question, got, want)
				}
				own := []string{"X-Forwarded-For: 192.0.2.1", "X-User: 42"}
				if got := look(ask(t, s, "GET", "/v1/usage"+query, "", own...)); got != want {
					t.Errorf("GET %s: %s, want %s", query, got, want)
				}
				r := httptest.NewRequest("GET", "/my/limits"+query, nil)
				r.RemoteAddr = "192.0.2.1:999"
				r.Header.Set("X-User", "42")
				w := httptest.NewRecorder()
				s.Usage().ServeHTTP(w, r)
				if got := look(w); got != want {
					t.Errorf("directly %s: %s, want %s", query, got, want)
				}
			}
		}
		charge := func(method, path string, n int) {
			t.Helper()
			for range n {
				ask(t, s, "POST", "/v1/check", `{"method":"`+method+`","path":"`+path+`","ip":"192.0.2.1","headers":{"X-User":"42"}}`, "X-Tidegate-Token: "+secret)
			}
		}
		f(`{"method":"POST","path":"/posts","ip":"192.0.2.1","as":{"user":42}}`, "?method=POST&path=/posts", "site[0,100,100] posts[0,10,10]")
		charge("POST", "/posts", 3)
		charge("GET", "/search", 2)
		charge("GET", "/api/x", 1)
		charge("GET", "/items/7", 2)
		f(`{"method":"POST","path":"/posts","ip":"192.0.2.1","as":{"user":42}}`, "?method=POST&path=/posts", "site[8,92,100] posts[3,7,10]")
		f(`{"path":"/items/7","ip":"192.0.2.1"}`, "?path=/items/7", "site[8,92,100] item[2,3,5]")
		f(`{"path":"/private","ip":"192.0.2.1"}`, "?path=/private", "site[8,92,100]")
		// Without a path, all rules but those that count by a part of it.
		all := "site[8,92,100] posts[3,7,10] search[2,0,2] slots[0,3,3] plan[1,999,1000] login[0,1,1]"
		f(`{"ip":"192.0.2.1","as":{"user":42}}`, "", all)
		charge("GET", "/login", 2) // the second is refused, and blocked
		f(`{"path":"/login","ip":"192.0.2.1"}`, "?path=/login", "site[9,91,100] login[1,0,1]! login[1,0,1]")
	})
}

func TestUsageIsAskedWell(t *testing.T) {
	s := newServer(t, usageRules, func(o *Options) { o.Token = func() string { return secret } })
	f := func(method, target string, want int, headers ...string) {
		t.Helper()
		if w := ask(t, s, method, target, "{}", headers...); w.Code != want {
			t.Errorf("%s %s %q: %d %s, want %d", method, target, headers, w.Code, w.Body, want)
		}
	}
	f("GET", "/v1/usage", 200)
	f("HEAD", "/v1/usage", 200)
	f("GET", "/v1/usage", 401, "Peer: 198.51.100.1:1")
	f("GET", "/v1/usage", 200, "Peer: 198.51.100.1:1", "Authorization: Bearer "+secret)
	f("GET", "/v1/usage", 200, "Peer: 198.51.100.1:1", "X-Tidegate-Token: "+secret)
	f("GET", "/v1/usage?x=1", 400)
	f("GET", "/v1/usage?method=GET", 400)
	f("GET", "/v1/usage?path=/&path=/a", 400)
	f("GET", "/v1/usage?path=/a/../b", 400)
	f("GET", "/v1/usage?path=a", 400)
	f("GET", "/v1/usage?path=/posts;x=1", 400)
	f("GET", "/v1/usage?path=/posts%3Bx=1", 200)
	f("GET", "/v1/usage?path=%zz", 400)
	f("GET", "/v1/usage?path=/&method=get", 400)
	f("POST", "/v1/usage", 401)
	f("POST", "/v1/usage", 200, "X-Tidegate-Token: "+secret)
}

// Behind a proxy, the host is the client's, and the certificate of the connection is nobody's: as
// at forward-auth.
func TestUsageBehindAProxy(t *testing.T) {
	s := newServer(t, `
identify: { cn: tls.client_cn }
rules:
  - { name: shop, match: shop.example/, per: ip, limits: 3/hour }
  - { name: names, match: /names, per: cn, limits: 5/hour }
`, nil)
	f := func(target string, want int, rules string, headers ...string) {
		t.Helper()
		r := httptest.NewRequest("GET", target, nil)
		r.RemoteAddr = "127.0.0.1:40000"
		r.Host = "tidegate"
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "proxy"}}}}}
		for _, h := range append(headers, "X-Forwarded-For: 192.0.2.1") {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Add(name, value)
		}
		w := serve(t, s, r)
		var u used
		_ = json.Unmarshal(w.Body.Bytes(), &u)
		if got := u.String(); w.Code != want || got != rules {
			t.Errorf("%s %q: %d %s, want %d %s", target, headers, w.Code, got, want, rules)
		}
	}
	f("/v1/usage?path=/x", 200, "shop[0,3,3]", "X-Forwarded-Host: shop.example")
	f("/v1/usage?path=/x", 200, "shop[0,3,3]", "X-Forwarded-Host: SHOP.example:443", "X-Forwarded-Host: SHOP.example:443")
	f("/v1/usage?path=/x", 200, "", "X-Forwarded-Host: other.example")
	f("/v1/usage?path=/x", 200, "")
	f("/v1/usage?path=/x", 400, "", "X-Forwarded-Host: shop.example", "X-Forwarded-Host: other.example")
	f("/v1/usage?path=/x", 400, "", "X-Forwarded-Host: shop.example, other.example")
	f(forwardAuth+"/names", 204, "") // counted by address
	f("/v1/usage?path=/names", 200, "names[1,4,5]")
}

// A limit that several rules' paths share is told once, also while it refills or others use it.
func TestUsageTellsEachLimitOnce(t *testing.T) {
	const shared = `
rules:
  - { name: site, per: ip, limits: { rate: 1000/second, algorithm: token_bucket } }
  - { name: a, match: /a, per: ip, limits: 9/hour }
  - { name: b, match: /b, per: ip, limits: 9/hour }
  - { name: c, match: /c, per: ip, limits: 9/hour }
`
	synctest.Test(t, func(t *testing.T) {
		far := &farAway{Backend: chain.Adapt(memory.New()), takes: time.Millisecond}
		s := serverOn(t, queue.New(far), shared, nil)
		post(t, s, "check", `{"path":"/","ip":"192.0.2.1","cost":900}`)
		for _, w := range []*httptest.ResponseRecorder{
			ask(t, s, "POST", "/v1/usage", `{"ip":"192.0.2.1"}`),
			ask(t, s, "GET", "/v1/usage", "", "X-Forwarded-For: 192.0.2.1"),
		} {
			var u used
			if err := json.Unmarshal(w.Body.Bytes(), &u); err != nil || len(u.Limits) != 4 {
				t.Errorf("%d limits: %s", len(u.Limits), w.Body)
			}
		}
	})
}
