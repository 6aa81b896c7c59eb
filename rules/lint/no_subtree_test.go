package lint_test

import "testing"

func TestNoSubtree(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "no-subtree", src, want...)
	}
	f(`
rules:
  - { name: a, match: /api, per: ip, limits: 5/minute }
`, "warning /api")
	f(`
rules:
  - { name: a, match: [GET /x, GET example.com/x/v2], per: ip, limits: 5/minute }
`, "warning GET example.com/x/v2")
	f(`
exempt: [{ match: /static }]
rules:
  - { name: a, per: ip, limits: 5/minute }
`, "warning /static")
	// A rule that closes a path is meant to close what others write rules for.
	f(`
rules:
  - { name: a, match: /reports, deny: true }
  - { name: b, match: GET /reports/daily, per: ip, limits: 5/minute }
`, "warning /reports")
	f(`
rules:
  - { name: a, match: /api/, per: ip, limits: 5/minute }
  - { name: b, match: [POST /api, /api/], per: ip, limits: 5/minute }
  - { name: c, match: "/api/{$}", per: ip, limits: 5/minute }
  - { name: d, match: "/v1/{id}", per: ip, limits: 5/minute }
  - { name: e, match: /v1/chat, per: ip, limits: 5/minute }
  - { name: f, match: / , per: ip, limits: 5/minute }
`)
	f(`
classes: [{ name: first, match: /admin }, { name: rest }]
rules:
  - { name: a, per: ip, limits: 5/minute, set_aside: { first: 20% } }
`, "warning /admin")
	// A collection and its items.
	f(`
rules:
  - { name: a, match: /orders, per: ip, limits: 5/minute }
  - { name: b, match: "/orders/{id}", per: ip, limits: 50/minute }
  - { name: c, match: POST /orders, deny: true }
`)
}
