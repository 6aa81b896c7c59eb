package rules

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/httplimit"
)

// Two values of one name count as none: they select no tier and no exemption, and the request
// is counted by its address. So it is for every source that a client can say twice.
func TestTwoValuesSelectNothing(t *testing.T) {
	const file = `
identify: { who: %s }
exempt: [{ match: /exempt, when: { who: [gold, bronze] } }]
rules:
  - name: api
    per: who
    limits: 2/minute
    for: [{ when: { who: [gold, bronze] }, limits: 1000/minute }]
  - { name: open, match: /exempt, per: ip, limits: 3/minute }
  - { name: guests, when: { who: absent }, per: ip, limits: 4/minute }
  - { name: strict, match: /strict, per: who, missing: refuse, limits: 5/minute }
`
	lines := func(name string, format string, values ...string) func(path string) *tidegate.Request {
		return func(path string) *tidegate.Request {
			r := httptest.NewRequest("GET", path, nil)
			for _, v := range values {
				r.Header.Add(name, fmt.Sprintf(format, v))
			}
			return httplimit.Options{}.Request(r)
		}
	}
	url := func(query string) func(path string) *tidegate.Request {
		return func(path string) *tidegate.Request {
			return httplimit.Options{}.Request(httptest.NewRequest("GET", path+"?"+query, nil))
		}
	}
	body := func(text string) func(path string) *tidegate.Request {
		return func(path string) *tidegate.Request {
			r := httptest.NewRequest("POST", path, strings.NewReader(text))
			r.Header.Set("Content-Type", "application/json")
			return httplimit.Options{}.Request(r)
		}
	}
	bearer := func(claims ...string) func(path string) *tidegate.Request {
		tokens := make([]string, len(claims))
		for i, c := range claims {
			tokens[i] = token("no key", c)
		}
		return lines("Authorization", "Bearer %s", tokens...)
	}
	const header, basic = "client header X-Api-Key", "basic.user"
	for name, one := range map[string]struct {
		source         string
		single, double func(path string) *tidegate.Request
	}{
		"header":   {header, lines("X-Api-Key", "%s", "gold"), lines("X-Api-Key", "%s", "gold", "bronze")},
		"cookie":   {"cookie id", lines("Cookie", "id=%s", "gold"), lines("Cookie", "id=%s", "gold", "bronze")},
		"query":    {"query id", url("id=gold"), url("id=gold&i%64=bronze")},
		"body":     {"body.a.id", body(`{"a":{"id":"gold"}}`), body(`{"a":{"id":"gold"},"a":{"id":"bronze"}}`)},
		"claims":   {"unverified jwt.sub", bearer(`{"sub":"gold"}`), bearer(`{"sub":"gold","sub":"bronze"}`)},
		"tokens":   {"unverified jwt.sub", bearer(`{"sub":"gold"}`), bearer(`{"sub":"gold"}`, `{"sub":"bronze"}`)},
		"basic":    {basic, lines("Authorization", "Basic %s", "Z29sZDp4"), lines("Authorization", "Basic %s", "Z29sZDp4", "YnJvbnplOng=")},
		"fallback": {"[cookie id, " + header + "]", lines("X-Api-Key", "%s", "gold"), lines("X-Api-Key", "%s", "gold", "bronze")},
	} {
		t.Run(name, func(t *testing.T) {
			f := heldTo(t, parse(t, fmt.Sprintf(file, one.source), Config{}))
			scope := "who"
			if name == "fallback" {
				scope = "who/" + header
			}
			f(one.single("/"), "api: 1000/1m0s sub_windows per "+scope+" gold")
			f(one.double("/"), "api: 2/1m0s sub_windows per ip 192.0.2.1", "guests: 4/1m0s sliding_log per ip 192.0.2.1")
			f(one.single("/exempt"))
			f(one.double("/exempt"), "api: 2/1m0s sub_windows per ip 192.0.2.1", "open: 3/1m0s sliding_log per ip 192.0.2.1", "guests: 4/1m0s sliding_log per ip 192.0.2.1")
			f(one.double("/strict"), "api: 2/1m0s sub_windows per ip 192.0.2.1", "guests: 4/1m0s sliding_log per ip 192.0.2.1", "strict: deny")
		})
	}
}
