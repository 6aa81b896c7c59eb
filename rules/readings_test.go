package rules

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/route"
)

// readRules have everything that can depend on the path, and all that can take a rule
// away.
const readRules = `
version: 1
identify:
  id: "path {id}"
  place: path
exempt:
  - match: /public/
  - { match: /open/, unless: { place: "/open/secret*" } }
rules:
  - { name: denied,  match: /denied/, deny: true }
  - { name: mostly,  match: /guarded/, deny: true, unless: { place: "/guarded/door" } }
  - { name: waits,   when: { place: ["/denied/x", "/a/*"] }, per: everyone, limits: 1/minute }
  - { name: all,     per: everyone, limits: 100/minute }
  - { name: user,    match: "/users/{id}", per: id, limits: 5/minute }
  - { name: special, match: "/users/{id}/special", per: id, limits: 7/minute, instead_of: below }
  - { name: below,   match: /users/, per: everyone, limits: 6/minute }
  - { name: page,    per: path, limits: 9/minute }
  - { name: tiers,   match: "/t/{id}", per: everyone, limits: 3/minute, for: [ { when: { id: free }, limits: unlimited } ] }
`

func plainRequest(path string) *tidegate.Request {
	return &tidegate.Request{Method: "GET", Path: path, Values: values{"ip": "192.0.2.1", "addr": "192.0.2.1"}}
}

// checksOf writes what a request is held to, one text per check.
func checksOf(set *Set, r *tidegate.Request) map[string]bool {
	all := map[string]bool{}
	for _, c := range set.Match(r, nil) {
		all[show([]tidegate.Check{c})] = true
	}
	return all
}

func TestEveryReadingIsHeld(t *testing.T) {
	set := parse(t, readRules, Config{})
	f := func(path string, want ...string) {
		t.Helper()
		names := map[string]bool{}
		for _, c := range set.Match(plainRequest(path), nil) {
			names[c.Limit.Name] = true
		}
		for _, name := range want {
			if !names[name] {
				t.Errorf("%s is not held to %s, only to %v", path, name, names)
			}
		}
	}
	f("/denied;a/x", "denied", "waits", "all", "page")
	f("/;a/denied/x", "denied")
	f("/a/..;/denied", "denied")
	f(`/a\..\denied`, "denied")
	f("/public;a/../denied", "denied")
	// What takes a rule away has to do so in every reading.
	f("/public/..;/x", "all", "page")
	f("/x/..;/public/y", "all", "page")
	f(`/public\..\x`, "all", "page")
	f("/open/x/..;/secret", "all")
	f("/guarded/door;a/..;/x", "mostly")
	f("/guarded/x/..;/door", "mostly")
	f("/users/1/special/..;/x", "below")
	f("/users/1/special;a/x/..;", "below", "special")
	f("/t/free;a", "tiers")
	f("/t/x/..;/free", "all")
}

// A wildcard has another value in another reading: both are counted, or a parameter
// would make a fresh counter of everybody.
func TestParametersMakeNoFreshCounters(t *testing.T) {
	set := parse(t, readRules, Config{})
	for _, path := range []string{"/users/7;1", "/users/7;2", "/users/x/..;/7", "/;x/users/7;", `/users\7`, "/users/7;a;b"} {
		held := checksOf(set, plainRequest(path))
		for check := range checksOf(set, plainRequest("/users/7")) {
			if !held[check] {
				t.Errorf("%s is not held to %s", path, check)
			}
		}
	}
}

// What any reading alone would be held to, the request is held to; and there is no
// check that none of them asks for.
func TestReadingsAreJoined(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	words := strings.Fields(`/denied /public /open /secret /guarded /door /users /7 /special /t /free /a /x /..; /; ;a ;b=c \ \.. %2f %5c %3b %3bx /..%2f /%2e%2e /. // /`)
	set := parse(t, readRules, Config{})
	odd, paths := 0, 4000
	if testdep.RaceEnabled {
		paths = 600
	}
	for range paths {
		var b strings.Builder
		b.WriteString("/")
		for range 1 + r.IntN(6) {
			b.WriteString(words[r.IntN(len(words))])
		}
		raw := b.String()
		path, err := url.PathUnescape(raw)
		if err != nil {
			t.Fatal(err)
		}
		q := plainRequest(path)
		q.RawPath = raw
		want := map[string]bool{}
		variants := route.New().Readings(path, raw, nil)
		if len(variants) > 1 {
			odd++
		}
		for _, way := range variants {
			st := set.state(q)
			st.readings = []route.Reading{way} // as if it were the only one
			st.collect()
			for i := st.resolveAll(); i < len(st.hits); i++ {
				for _, c := range st.append(nil, &st.hits[i]) {
					want[show([]tidegate.Check{c})] = true
				}
			}
			st.done()
		}
		got := checksOf(set, q)
		for check := range want {
			if !got[check] {
				t.Fatalf("%s is not held to %s, as one of its readings is", raw, check)
			}
		}
		for check := range got {
			if !want[check] {
				t.Fatalf("%s is held to %s, as none of its readings is", raw, check)
			}
		}
		agree(t, set, q)
		if n := len(set.Match(q, nil)); n != len(got) {
			t.Fatalf("%s is held to %d checks, %d of them different", raw, n, len(got))
		}
	}
	if odd < paths/4 {
		t.Errorf("only %d paths have several readings", odd)
	}
}

func TestIgnoreCase(t *testing.T) {
	set := parse(t, `
lists:
  pages: [/Home, /Start*]
identify: { id: "path {id}", place: path }
exempt:
  - when: { place: in pages }
rules:
  - { name: denied, match: /Denied/, deny: true }
  - { name: users,  match: "/users/{id}", per: id, limits: 5/minute }
  - { name: admin,  when: { place: "/ADMIN*" }, per: everyone, limits: 1/minute }
  - { name: page,   per: path, limits: 9/minute }
`, Config{IgnoreCase: true})
	f := func(path, like string) {
		t.Helper()
		got, want := checksOf(set, plainRequest(path)), checksOf(set, plainRequest(like))
		for check := range want {
			if !got[check] {
				t.Errorf("%s is not held to %s, as %s is", path, check, like)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s is held to %v, %s to %v", path, got, like, want)
		}
	}
	f("/DENIED/x", "/denied/x")
	f("/denied/X", "/Denied/x")
	f("/Users/ANN", "/users/ann")
	f("/admin/x", "/ADMIN/x")
	f("/HOME", "/home")
	f("/starTed", "/Started")
	if got := checksOf(set, plainRequest("/hOme")); len(got) != 0 {
		t.Errorf("/hOme is held to %v and should be exempt", got)
	}
	if got := checksOf(parse(t, readRules, Config{}), plainRequest("/Denied/x")); got["denied"] {
		t.Error("without the setting, case counts")
	}
}
