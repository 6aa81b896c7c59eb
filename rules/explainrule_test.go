package rules

import (
	"reflect"
	"testing"

	"tidegate.dev/tidegate"
)

// ExplainRule says of every rule what Explain says of it, and of the request the same, whichever
// rule is asked about.
func TestExplainRule(t *testing.T) {
	live := measured(t, `
identify: { user: client header X-User, role: client header X-Role }
exempt: [{ match: /healthz }]
rules:
  - { name: path, match: [/api/, /v2/], per: ip, limits: 1/second }
  - { name: method, match: [POST /a/, "PUT /a/{id}"], per: [user, route], limits: [1/second, 9/hour] }
  - { name: when, when: { role: admin }, per: ip, limits: 1/second }
  - { name: replaced, per: ip, limits: 1/second }
  - { name: better, per: user, limits: 5/second, block: 1m, instead_of: replaced }
  - { name: off, match: /a/, per: ip, limits: 1/second, mode: disabled }
  - { name: tried, match: /a/, per: user, limits: 1/second, mode: shadow }
  - { name: members, match: /members/, unless: { role: member }, deny: true }
  - { name: slots, match: /a/, per: user, concurrency: { slots: 4, lease: 30s } }
`, ban("b-1", "user=mallory", ""), ban("b-2", "user=eve", "path"), override("o-1", "user=acme", "better", "9/second"))
	f := func(r *tidegate.Request) {
		t.Helper()
		all := live.Explain(r)
		for _, x := range all.Rules {
			want := all
			want.Rules = []ExplainedRule{x}
			if got := live.ExplainRule(r, x.Name); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s, %s:\n%+v\nwant\n%+v", r.Method, r.Path, x.Name, got, want)
			}
		}
		want := all
		want.Rules = []ExplainedRule{}
		if got := live.ExplainRule(r, "none"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s %s, a rule that is not there: %+v", r.Method, r.Path, got)
		}
	}
	for _, user := range []string{"", "acme", "mallory", "eve"} {
		for _, line := range []string{"GET /api/x", "POST /a/", "PUT /a/7", "GET /a/b", "GET /healthz", "GET /members/", "GET /", "GET /api/;x/../v2/"} {
			for _, role := range []string{"", "admin", "member"} {
				f(request(line, "ip", "192.0.2.1", "header X-User", user, "header X-Role", role))
			}
		}
	}
}
