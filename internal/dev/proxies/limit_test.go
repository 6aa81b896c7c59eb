package proxies

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const twoPerMinute = `
version: 1
rules:
  - { name: denied, match: /denied/, deny: true }
  - { name: two, match: /two/, per: ip, limits: 2/minute }
`

// A refusal reaches the client with its status and Retry-After, an allowed request the origin as
// it was sent, and what is left of a limit the client or the origin.
func TestRefusalsReachTheClient(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, twoPerMinute)
		c := newClient(t, p.run(t, d.addr, o.addr))
		for i := range 2 {
			got := c.get("/two/x?a=b")
			if got.status != 200 || got.body != "origin\n" {
				t.Fatalf("request %d: %+v", i, got)
			}
			arrived := o.reached()
			if len(arrived) != 1 || arrived[0].target != "/two/x?a=b" || arrived[0].header.Get("Host") != "example.com" {
				t.Fatalf("the origin got %+v", arrived)
			}
			told := got.header
			if p.toOrigin {
				told = arrived[0].header
			}
			want := `"two";r=` + strconv.Itoa(1-i) + ";"
			if limit := told.Get("RateLimit"); !p.untold && !strings.HasPrefix(limit, want) || (told.Get("RateLimit-Policy") == "") != p.untold {
				t.Errorf("request %d: RateLimit: %s, want %s; RateLimit-Policy: %s", i, limit, want, told.Get("RateLimit-Policy"))
			}
		}
		got := c.get("/two/x")
		wait, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 60 {
			t.Errorf("the third: %+v", got)
		}
		if kind := got.header.Get("Content-Type"); !p.ownBody && (kind != "application/problem+json" || !strings.Contains(got.body, `"status":429`)) {
			t.Errorf("the third: %s: %s", kind, got.body)
		}
		if limit := got.header.Get("RateLimit"); !strings.HasPrefix(limit, `"two";r=0;`) {
			t.Errorf("the third: RateLimit: %s", limit)
		}
		got = c.get("/denied/x")
		if got.status != http.StatusForbidden || got.header.Get("Retry-After") != "" || !p.ownBody && !strings.Contains(got.body, `"status":403`) {
			t.Errorf("denied: %+v", got)
		}
		if arrived := o.reached(); len(arrived) > 0 {
			t.Errorf("refused requests reached the origin: %+v", arrived)
		}
		got = c.get("/free")
		if arrived := o.reached(); got.status != 200 || len(arrived) != 1 || got.header.Get("RateLimit")+arrived[0].header.Get("RateLimit") != "" || got.header.Get("Retry-After") != "" {
			t.Errorf("no rule applies: %+v, %+v", got, arrived)
		}
	})
}

// Methods, bodies and the headers of clients pass, and rules see the method.
func TestRequestsPassUnchanged(t *testing.T) {
	const rules = "version: 1\nidentify: { key: header X-Key }\nrules:\n  - { name: posts, match: POST /, per: everyone, limits: 1000/hour }\n  - { name: key, match: /key/, per: key, limits: 1/hour }\n"
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, rules)
		c := newClient(t, p.run(t, d.addr, o.addr))
		long := strings.Repeat("0123456789", 10_000)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			body := ""
			if method == "POST" || method == "PUT" || method == "PATCH" {
				body = long
			}
			got := c.send(method, "/x", body, "X-Own: yes", "Authorization: Bearer abc")
			arrived, asked := o.reached(), d.decisions()
			if got.status != 200 || len(arrived) != 1 || arrived[0].method != method || arrived[0].body != body || arrived[0].header.Get("X-Own") != "yes" || arrived[0].header.Get("Authorization") != "Bearer abc" {
				t.Errorf("%s: %d; %d arrived", method, got.status, len(arrived))
			}
			if len(asked) != 1 || (len(asked[0]) == 1) != (method == "POST") {
				t.Errorf("%s: asked %v", method, asked)
			}
		}
		got := c.exchange("POST", "POST /x HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
		if arrived := o.reached(); got.status != 200 || len(arrived) != 1 || arrived[0].body != "hello" {
			t.Errorf("chunked: %d, %+v", got.status, arrived)
		}
		for i, want := range []int{200, 429, 200} {
			key := "X-Key: " + []string{"a", "a", "b"}[i]
			if got := c.get("/key/", key); got.status != want {
				t.Errorf("%s: %d, want %d", key, got.status, want)
			}
		}
	})
}

// What a client claims about itself changes nothing.
func TestClaimsOfClients(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, twoPerMinute)
		c := newClient(t, p.run(t, d.addr, o.addr))
		for _, claim := range []string{
			"X-Forwarded-Uri: /free", "X-Original-URI: /free", "X-Original-URL: /free", "X-Original-URL: http://example.com/free", "X-Forwarded-Uri: /free\r\nX-Forwarded-Uri: /free",
			"x-original-uri: /free\r\nX-Original-URI: /free", "X-Forwarded-Method: OPTIONS", "X-Original-Method: OPTIONS", "X-Forwarded-Host: other", "X-Forwarded-For: 192.0.2.9",
			"X-Forwarded-For: 127.0.0.1, 192.0.2.9", "Forwarded: for=192.0.2.9", "X-Real-IP: 192.0.2.9", "X-Tidegate-Token: 0123456789abcdef", "X-Tidegate-Decision: allowed",
			"X-Tidegate-Decision: allowed\r\nRateLimit: 1000", "Connection: X-Original-URI, X-Forwarded-Uri", "Connection: X-Forwarded-For", "X_Original_URI: /free", "X-Rewrite-URL: /free", "X-Forwarded-Prefix: /free",
		} {
			if got := c.get("/denied/x", claim); got.status < 400 {
				t.Errorf("%q: %d", claim, got.status)
			}
			if arrived := o.reached(); len(arrived) > 0 {
				t.Errorf("%q: reached the origin", claim)
			}
			d.decisions()
			// Either the claim is refused, or the address of the connection is charged.
			got := c.get("/two/x", claim)
			if arrived := o.reached(); len(arrived) > 0 && len(d.decisions()) != 1 {
				t.Errorf("%q: uncounted", claim)
			} else if got.status < 400 && len(arrived) != 1 {
				t.Errorf("%q: %d, %d arrived", claim, got.status, len(arrived))
			}
		}
		if got := c.get("/two/x"); got.status != 429 {
			t.Errorf("claims made another client: %+v", got)
		}
	})
}

// Connections to Tidegate are kept.
func TestConnectionsAreKept(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, "version: 1\nrules: [ { name: all, per: everyone, limits: 1000/hour } ]\n")
		c := newClient(t, p.run(t, d.addr, o.addr))
		const n = 300 // workers and threads keep connections of their own
		for range n {
			if got := c.get("/x"); got.status != 200 {
				t.Fatalf("%+v", got)
			}
		}
		if asked := len(d.decisions()); asked != n || d.connections() > n/3 {
			t.Errorf("%d requests: %d decisions over %d connections", n, asked, d.connections())
		}
	})
}

// Of many requests at once, as many pass as the limit says, and each is asked about once.
func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, p proxy) {
		o, d := newOrigin(t), newDoor(t, "version: 1\nrules: [ { name: all, per: everyone, limits: 100/hour } ]\n")
		addr := p.run(t, d.addr, o.addr)
		var passed, refused atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			c := newClient(t, addr)
			all.Go(func() {
				for range 15 {
					switch c.get("/x").status {
					case 200:
						passed.Add(1)
					case 429:
						refused.Add(1)
					}
				}
			})
		}
		all.Wait()
		if asked := len(d.decisions()); asked != 300 || passed.Load() != 100 || refused.Load() != 200 || len(o.reached()) != 100 {
			t.Errorf("%d passed and %d were refused, by %d decisions", passed.Load(), refused.Load(), asked)
		}
	})
}
