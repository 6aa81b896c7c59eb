package rules

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

func TestEveryRuleThatMatchesApplies(t *testing.T) {
	f := heldTo(t, parse(t, `
rules:
  - { name: api, match: /api/, per: ip, limits: [100/minute, 1000/hour] }
  - { name: posts, match: [POST /posts, PUT /api/posts/], per: ip, limits: 2/second }
  - { name: shop, match: shop.example.com/, per: ip, limits: 7/second }
  - { name: site, per: everyone, limits: { rate: 10000/second, burst: 12000, algorithm: token_bucket } }
`, Config{}))
	const site = "site: 10000/1s token_bucket burst 12000 per everyone"
	f(request("GET /", "ip", "192.0.2.1"), site)
	f(request("POST /posts", "ip", "192.0.2.1"), "posts: 2/1s sliding_log per ip 192.0.2.1", site)
	f(request("POST /posts/", "ip", "192.0.2.1"), "posts: 2/1s sliding_log per ip 192.0.2.1", site)
	f(request("GET /posts", "ip", "192.0.2.1"), site)
	f(request("PUT shop.example.com/api//posts/../posts/7", "ip", "192.0.2.1"),
		"api: 100/1m0s sub_windows per ip 192.0.2.1",
		"api: 1000/1h0m0s sub_windows per ip 192.0.2.1",
		"posts: 2/1s sliding_log per ip 192.0.2.1",
		"shop: 7/1s sliding_log per ip 192.0.2.1", site)
	f(request("GET /apiary", "ip", "192.0.2.1"), site)
}

// The server of a path may take an escaped slash for a slash or not: rules hold
// for both readings, and each finds its own wildcard.
func TestTrapEscapedSlash(t *testing.T) {
	set := parse(t, `
identify: { name: "path {name}" }
rules:
  - { name: file, match: "/files/{name}", per: name, limits: 1/second }
  - { name: below, match: /files/a/, per: everyone, limits: 1/second }
`, Config{})
	r := request("GET /files/a/b")
	heldTo(t, set)(r, "below: 1/1s sliding_log per everyone")
	r.RawPath = "/files/a%2Fb"
	heldTo(t, set)(r, "file: 1/1s sliding_log per name a/b", "below: 1/1s sliding_log per everyone")
	agree(t, set, r)
}

func TestInsteadOf(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { role: header X-Role, user: header X-User }
exempt: [{ match: /health }]
rules:
  - { name: api, match: /api/, per: ip, limits: 1/minute }
  - { name: events, match: /api/events, per: ip, limits: 2/minute, instead_of: [api, limits] }
  - { name: bulk, match: POST /api/events, when: { role: bulk }, per: ip, limits: 3/minute, instead_of: events }
  - { name: limits, match: /api/, per: ip, limits: 4/minute }
  - { name: idea, match: /api/idea, per: ip, limits: 5/minute, mode: shadow, instead_of: api }
  - { name: gone, match: /api/gone, per: ip, limits: 6/minute, mode: disabled, instead_of: api }
  - { name: mine, match: /api/mine, per: user, missing: skip, limits: 7/minute, instead_of: api }
  - { name: free, match: /api/free, per: ip, limits: 8/minute, instead_of: [api, limits], for: [{ when: { role: staff }, limits: unlimited }] }
`, Config{}))
	const (
		api    = "api: 1/1m0s sliding_log per ip @"
		events = "events: 2/1m0s sliding_log per ip @"
		bulk   = "bulk: 3/1m0s sliding_log per ip @"
		limits = "limits: 4/1m0s sliding_log per ip @"
	)
	f(request("GET /api/"), api, limits)
	f(request("GET /api/events"), events)
	// Its condition does not hold, so it stands for nothing.
	f(request("POST /api/events", "header X-Role", "user"), events)
	// What is replaced still replaces those it names.
	f(request("POST /api/events", "header X-Role", "bulk"), bulk)
	// What is tried, or off, or skipped, takes nothing away.
	f(request("GET /api/idea"), api, limits, "idea: 5/1m0s sliding_log per ip @ advisory tries")
	f(request("GET /api/gone"), api, limits)
	f(request("GET /api/mine"), api, limits)
	f(request("GET /api/mine", "header X-User", "42"), limits, "mine: 7/1m0s sliding_log per user 42")
	// A rule that applies and is unlimited still stands for those it names.
	f(request("GET /api/free", "header X-Role", "staff"))
}

func TestExempt(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { role: header X-Role }
lists: { partners: [203.0.113.0/24, "2001:db8::/32"] }
exempt:
  - { match: /healthz }
  - { when: { ip: in partners }, unless: { role: guest } }
rules:
  - { name: site, per: everyone, limits: 5/second }
  - { name: banned, when: { ip: 203.0.113.66 }, deny: true }
`, Config{}))
	const site, banned = "site: 5/1s sliding_log per everyone", "banned: deny 203.0.113.66"
	f(request("GET /"), site)
	f(request("GET /healthz"))
	f(request("GET /healthz/deep"), site)
	f(request("GET /", "ip", "203.0.113.7"))
	f(request("GET /", "ip", "203.0.113.7", "header X-Role", "guest"), site)
	f(request("GET /", "ip", "2001:db8:1:2::/64", "addr", "2001:db8:1:2::3"))
	f(request("GET /", "ip", "203.0.113.66"), banned)
	f(request("GET /healthz", "ip", "203.0.113.66"), banned)
}

func TestConditions(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { user: header X-User, agent: client header User-Agent, role: header X-Role, tenant: "path {tenant}" }
lists: { staff: [ann, bob, "test-*"], office: [192.0.2.0/24, 198.51.100.7] }
rules:
  - { name: literal, when: { user: acme }, per: everyone, limits: 1/second }
  - { name: any, when: { user: [acme, globex] }, per: everyone, limits: 2/second }
  - { name: all, when: { user: acme, role: admin }, per: everyone, limits: 3/second }
  - { name: glob, when: { agent: "*-bot" }, per: everyone, limits: 4/second }
  - { name: network, when: { ip: [10.0.0.0/8, "2001:db8::/32"] }, per: everyone, limits: 5/second }
  - { name: list, when: { user: in staff }, per: everyone, limits: 6/second }
  - { name: office, when: { ip: in office }, per: everyone, limits: 7/second }
  - { name: absent, when: { user: absent }, per: everyone, limits: 8/second }
  - { name: present, when: { user: present }, unless: { role: [admin, root] }, per: everyone, limits: 9/second }
  - { name: route, match: [/a/, "/t/{tenant}"], when: { route: /a/ }, per: everyone, limits: 10/second }
  - { name: wildcard, match: "/t/{tenant}", when: { tenant: acme }, per: everyone, limits: 11/second }
  - { name: method, when: { method: [PUT, DELETE] }, per: everyone, limits: 12/second }
  - { name: host, when: { host: shop.example.com }, per: everyone, limits: 13/second }
  - { name: many, when: { role: [a, b, c, d, e, f, g, h, i, j] }, per: everyone, limits: 15/second }
  - { name: both, unless: { user: present, role: admin }, per: everyone, limits: 14/second }
`, Config{}))
	rules := map[string]string{
		"literal": "1", "any": "2", "all": "3", "glob": "4", "network": "5", "list": "6", "office": "7", "absent": "8",
		"present": "9", "route": "10", "wildcard": "11", "method": "12", "host": "13", "both": "14", "many": "15",
	}
	when := func(r *tidegate.Request, names ...string) {
		t.Helper()
		var want []string
		for _, n := range names {
			want = append(want, n+": "+rules[n]+"/1s sliding_log per everyone")
		}
		f(r, want...)
	}
	when(request("GET /"), "absent", "both")
	when(request("GET /", "header X-User", ""), "absent", "both")
	when(request("GET /", "header X-User", "acme"), "literal", "any", "present", "both")
	when(request("GET /", "header X-User", "globex"), "any", "present", "both")
	when(request("GET /", "header X-User", "acme", "header X-Role", "admin"), "literal", "any", "all")
	when(request("GET /", "header X-User", "ACME"), "present", "both") // as written
	when(request("GET /", "client header User-Agent", "search-bot"), "glob", "absent", "both")
	when(request("GET /", "ip", "10.1.2.3"), "network", "absent", "both")
	when(request("GET /", "ip", "2001:db8:1:2::/64", "addr", "2001:db8:1:2::3"), "network", "absent", "both")
	when(request("GET /", "ip", "::ffff:10.1.2.3"), "network", "absent", "both")
	when(request("GET /", "header X-User", "bob"), "list", "present", "both")
	when(request("GET /", "header X-User", "test-7"), "list", "present", "both")
	when(request("GET /", "ip", "192.0.2.200"), "office", "absent", "both")
	when(request("GET /", "ip", "198.51.100.7"), "office", "absent", "both")
	when(request("GET /", "ip", "198.51.100.8"), "absent", "both")
	when(request("GET /a/b"), "absent", "route", "both")
	when(request("GET /t/globex"), "absent", "both")
	when(request("GET /t/acme"), "absent", "wildcard", "both")
	when(request("DELETE /"), "absent", "method", "both")
	when(request("GET /", "header X-Role", "j"), "absent", "many", "both")
	when(request("GET /", "header X-Role", "k"), "absent", "both")
	when(request("GET Shop.Example.com:8080/"), "absent", "host", "both")
}

// A rule stands for another where it decides, and nowhere else.
func TestInsteadOfForAShare(t *testing.T) {
	set := parse(t, `
identify: { user: header X-User }
rules:
  - { name: old, per: user, limits: 1/minute }
  - { name: new, per: user, limits: 2/minute, enforce: 50%, instead_of: old }
`, Config{})
	counts := make(map[string]int)
	for i := range 100 {
		user := fmt.Sprint("u", i)
		got := show(set.Match(request("GET /", "header X-User", user), nil))
		counts[strings.ReplaceAll(got, " "+user, "")]++
	}
	const tried = "old: 1/1m0s sliding_log per user\nnew: 2/1m0s sliding_log per user advisory tries\n"
	const decides = "new: 2/1m0s sliding_log per user\n"
	if len(counts) != 2 || counts[tried] < 30 || counts[decides] < 30 {
		t.Errorf("%v", counts)
	}
}

// Many rules that wait for a value are looked up, not asked; it must not show.
func TestRulesByValue(t *testing.T) {
	f := func(when string) {
		t.Helper()
		var b strings.Builder
		b.WriteString("identify: { user: header X-User, role: header X-Role }\nrules:\n")
		for i, user := range []string{"u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "[u8, u9, u9]", "u1"} {
			fmt.Fprintf(&b, "  - { name: r%d, match: /api/, when: { %s }, per: everyone, limits: 1/second }\n", i, fmt.Sprintf(when, user))
		}
		set := parse(t, b.String(), Config{})
		if n := len(set.index.byPattern[0].byValue[0].refs["u1"]); n != 2 {
			t.Errorf("%d rules are found by u1, not 2", n)
		}
		want := func(user, role, want string) {
			t.Helper()
			r := request("GET /api/", "header X-User", user, "header X-Role", role)
			var got []string
			for _, c := range set.Match(r, nil) {
				got = append(got, c.Limit.Terms.Rule)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", user, got, want)
			}
		}
		want("u3", "member", "r2")
		want("u1", "member", "r0 r9")
		want("u8", "member", "r7 r8")
		want("u9", "member", "r8")
		want("u7", "guest", "")
		want("u0", "member", "")
	}
	f("role: member, user: %s")
	f("user: %s, role: [member, owner]")
}

// What takes a limit away has to hold for every reading of the path: whoever
// serves it may take another one.
func TestTrapEscapedPathEscapesNothing(t *testing.T) {
	set := parse(t, `
exempt: [{ match: /healthz }, { match: /public/ }]
rules:
  - { name: api, match: /api/, per: everyone, limits: 1/minute }
  - { name: events, match: /api/events/, per: everyone, limits: 2/minute, instead_of: api }
`, Config{})
	const (
		api    = "api: 1/1m0s sliding_log per everyone"
		events = "events: 2/1m0s sliding_log per everyone"
	)
	f := func(raw string, want ...string) {
		t.Helper()
		path, err := url.PathUnescape(raw)
		if err != nil {
			t.Fatal(err)
		}
		r := request("GET " + path)
		r.RawPath = raw
		heldTo(t, set)(r, want...)
		agree(t, set, r)
	}
	f("/api/x", api)
	f("/public/x")
	f("/public/a%2Fb")
	f("/api/events/a%2Fb", events)
	f("/api/..%2Fhealthz", api)
	f("/api/%2e%2e/healthz", api)
	f("/public/..%2Fapi/x", api)
	f("/public/%2e%2e/api/x", api)
	f("/public%2f%2e%2e%2fapi/x", api)
	f("/api/events/..%2Forders", api, events)
	f("/api/orders/..%2Fevents/x", api, events)
}

// What a condition compares is spelled as hosts and addresses are.
func TestConditionsSpelledLikeRequests(t *testing.T) {
	set := parse(t, `
identify: { client: [header X-Real-IP, ip] }
lists: { hosts: ["Listed.Example.:80", "*.Many.Example", "*:8080"] }
rules:
  - { name: host, match: /a, when: { host: Shop.Example. }, per: everyone, limits: 1/second }
  - { name: glob, match: /a, when: { host: "*.Shops.Example" }, per: everyone, limits: 2/second }
  - { name: list, match: /a, when: { host: in hosts }, per: everyone, limits: 3/second }
  - { name: row, match: /b, per: host, limits: { by: host, rows: { Row.Example: 4/second }, else: 5/second } }
  - { name: six, match: /c, when: { client: "2001:db8::1" }, per: everyone, limits: 6/second }
  - { name: four, match: /c, when: { client: 203.0.113.7 }, per: everyone, limits: 7/second }
`, Config{})
	f := func(r *tidegate.Request, want string) {
		t.Helper()
		var got []string
		for _, c := range set.Match(r, nil) {
			got = append(got, c.Limit.Name+" "+c.Key)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s%s %v: %q, want %q", r.Host, r.Path, r.Values, text, want)
		}
	}
	f(request("GET SHOP.example:8080/a"), "host ")
	f(as("GET /a", "host", "Shop.Example:80"), "host ")
	f(request("GET a.shops.example/a"), "glob ")
	f(request("GET listed.example/a"), "list ")
	f(request("GET a.many.Example./a"), "list ")
	f(request("GET other.example:8080/a"), "")
	f(request("GET ROW.example/b"), "row row.example")
	f(request("GET other.example/b"), "row else")
	f(request("GET /c", "ip", "2001:db8::/64", "addr", "2001:db8::1"), "six ")
	f(request("GET /c", "ip", "2001:db8::/64", "addr", "2001:db8::2"), "")
	f(request("GET /c", "header X-Real-IP", "2001:DB8:0::1"), "six ")
	f(request("GET /c", "ip", "203.0.113.7"), "four ")
}
