package rules

import (
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

func TestSubjects(t *testing.T) {
	f := heldTo(t, parse(t, `
identify:
  user: header X-User
  who: [header X-User, cookie session, client header X-Api-Key]
  net: ip /24 /48
  doc: "path {id}"
  tenant: descriptor
rules:
  - { name: a, match: "/a/{id}", per: user, limits: 1/second }
  - { name: b, match: "/b/{id}", per: who, limits: 1/second }
  - { name: c, match: ["/c/{id}", "/c/"], per: [user, route], limits: 1/second }
  - { name: d, match: "/d/{id}", per: doc, limits: 1/second }
  - { name: e, match: "/e/{id}", per: net, limits: 1/second }
  - { name: f, match: "/f/{id}", per: tenant, limits: 1/second }
  - { name: g, match: "/g/{id}", per: tenant, missing: ip, limits: 1/second }
  - { name: h, match: "/h/{id}", per: user, missing: skip, limits: 1/second }
  - { name: j, match: "/j/{id}", per: ip, missing: skip, limits: 1/second }
  - { name: i, match: "/i/{id}", per: [host, method, path], limits: 1/second }
`, Config{}))
	const limit = "1/1s sliding_log per "
	f(request("GET /a/1", "header X-User", "42"), "a: "+limit+"user 42")
	f(request("GET /a/1", "ip", "192.0.2.1"), "a: "+limit+"ip 192.0.2.1")
	f(request("GET /a/1"), "a: "+limit+"ip @")

	// Each source has counters of its own: nobody can name another one's.
	f(request("GET /b/1", "header X-User", "42", "cookie session", "s"), "b: "+limit+"who/header X-User 42")
	f(request("GET /b/1", "cookie session", "42"), "b: "+limit+"who/cookie session 42")
	f(request("GET /b/1", "client header X-Api-Key", "42"), "b: "+limit+"who/client header X-Api-Key 42")
	f(request("GET /b/1", "ip", "192.0.2.1"), "b: "+limit+"ip 192.0.2.1")

	f(request("GET /c/1", "header X-User", "42"), "c: "+limit+"user,route 2:427:/c/{id}")
	f(request("GET /c/1/2", "header X-User", "42"), "c: "+limit+"user,route 2:423:/c/")
	f(request("GET /c", "ip", "192.0.2.1"), "c: "+limit+"ip,route 9:192.0.2.13:/c/")

	f(request("GET /d/x%2Fy"), "d: "+limit+"doc x%2Fy")
	f(request("GET /e/1", "ip /24 /48", "192.0.2.0/24"), "e: "+limit+"net 192.0.2.0/24")
	f(request("GET /e/1", "ip", "192.0.2.1"), "e: "+limit+"net 192.0.2.0/24") // a front end that knows the address alone
	f(request("GET /e/1", "ip", "2001:db8:1::/64", "addr", "2001:db8:1:2::3"), "e: "+limit+"net 2001:db8:1::/48")

	f(request("GET /f/1", "tenant", "acme"), "f: "+limit+"tenant acme")
	f(request("GET /f/1", "ip", "192.0.2.1"))
	f(request("GET /g/1", "ip", "192.0.2.1"), "g: "+limit+"ip 192.0.2.1")
	f(request("GET /h/1", "ip", "192.0.2.1"))
	f(request("GET /j/1"), "j: "+limit+"ip @") // every request has an address
	f(request("GET Example.com:80/i//1/"), "i: "+limit+"host,method,path 11:example.com3:GET4:/i/1")
}

// What front ends are asked for: the names are a contract with each of them.
func TestNamesOfValues(t *testing.T) {
	f := func(source, name string) {
		t.Helper()
		set := parse(t, "identify: { who: "+source+" }\nrules: [{ name: r, per: who, limits: 1/second }]", Config{})
		heldTo(t, set)(request("GET /", name, "42"), "r: 1/1s sliding_log per who 42")
	}
	f("ip", "ip")
	f("ip /32 /64", "ip")
	f("ip /24 /48", "ip /24 /48")
	f("header X-User", "header X-User")
	f("client header X-User", "client header X-User")
	f("cookie session", "cookie session")
	f("query key", "query key")
	f("body.a.b", "body.a.b")
	f("basic.user", "basic.user")
	f("tls.client_cn", "tls.client_cn")
	f("metadata x-user", "metadata x-user")
	f("descriptor", "who")
	f("descriptor tenant", "tenant")
}

func TestMissingRefuse(t *testing.T) {
	set := parse(t, `
identify: { user: header X-User, key: client header X-Api-Key }
rules:
  - { name: keyed, match: /a/, per: [key, user], missing: refuse, limits: 1/second }
  - { name: tried, match: /b/, per: key, missing: refuse, limits: 1/second, mode: shadow }
`, Config{})
	f := func(r *tidegate.Request, message string, advisory bool) {
		t.Helper()
		checks := set.Match(r, nil)
		if len(checks) != 1 {
			t.Fatalf("%s", show(checks))
		}
		c := checks[0]
		answer := c.Limit.Terms.Answer
		if c.Limit.Algorithm != tidegate.Deny || answer.Status != 400 || answer.Message != message || c.Advisory != advisory {
			t.Errorf("%s, answered %+v, want %q", show(checks), answer, message)
		}
	}
	f(request("GET /a/"), "the request has no key", false)
	f(request("GET /a/", "client header X-Api-Key", "k"), "the request has no user", false)
	f(request("GET /b/"), "the request has no key", true)
	heldTo(t, set)(request("GET /a/", "client header X-Api-Key", "k", "header X-User", "42"), "keyed: 1/1s sliding_log per key,user 1:k2:42")
}

// Trap: `a=b_X` and `a_b=X` must not share a counter, however long they are.
func TestTrapJoinedKeysDoNotMeet(t *testing.T) {
	set := parse(t, `
identify: { a: client header A, b: client header B }
rules: [{ name: two, per: [a, b], limits: 1/second }, { name: one, per: a, limits: 1/second }]
`, Config{})
	seen := make(map[string][2]string)
	parts := []string{"x", "xx", "1:x", "x1:", "2:xx", ":", "1:", "#", "@", "\x00", strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 200)}
	for _, a := range parts {
		for _, b := range parts {
			checks := set.Match(request("GET /", "client header A", a, "client header B", b), nil)
			if other, ok := seen[checks[0].Key]; ok {
				t.Errorf("%q and %q have the key of %q", a, b, other)
			}
			seen[strings.Clone(checks[0].Key)] = [2]string{a, b}
			if len(checks[0].Key) > 65 || len(checks[1].Key) > 65 {
				t.Errorf("keys of %d and %d bytes", len(checks[0].Key), len(checks[1].Key))
			}
		}
	}
}

func TestIdentifiedDecides(t *testing.T) {
	f := heldTo(t, parse(t, `
identify: { user: jwt.sub, net: ip /24 /48, limit: jwt.rpm }
rules:
  - { name: a, match: /a, per: user, limits: 1/second }
  - { name: b, match: /b, per: ip, limits: 1/second }
  - { name: c, match: /c, per: net, limits: 1/second }
  - { name: d, match: /d, when: { ip: 192.0.2.0/24 }, per: everyone, limits: 1/second }
  - { name: e, match: /e, per: everyone, limits: { from: jwt.rpm, per: second, max: 9, else: 5 } }
`, Config{}))
	const limit = "1/1s sliding_log per "
	f(as("GET /a", "user", "42"), "a: "+limit+"user 42")
	f(as("GET /a", "user", "", "ip", "192.0.2.1"), "a: "+limit+"ip 192.0.2.1")
	f(as("GET /b", "ip", "2001:db8:1:2::3"), "b: "+limit+"ip 2001:db8:1:2::/64")
	f(as("GET /c", "ip", "192.0.2.1"), "c: "+limit+"net 192.0.2.0/24")
	f(as("GET /c", "net", "office"), "c: "+limit+"net office")
	f(as("GET /d", "ip", "192.0.2.1"), "d: "+limit+"everyone")
	f(as("GET /d", "ip", "192.0.3.1"))
	f(as("GET /e", "limit", "7"), "e: 7/1s sliding_log per everyone")
}

func TestTooManyWaysToFindSomebody(t *testing.T) {
	src := "version: 1\nidentify:\n"
	for _, name := range []string{"a", "b", "c", "d"} {
		src += "  " + name + ": [header A, header B, header C, header D]\n"
	}
	_, err := Parse("rules.yaml", []byte(src+"rules:\n  - name: r\n    per: [a, b, c, d]\n    limits: 1/second\n"), Config{})
	if err == nil || !strings.Contains(err.Error(), "rules.yaml:9:") || !strings.Contains(err.Error(), "more than 256 ways") {
		t.Errorf("the error is %v", err)
	}
}
