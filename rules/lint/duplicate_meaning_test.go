package lint_test

import "testing"

func TestDuplicateMeaning(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "duplicate-meaning", src, want...)
	}
	f(`
rules:
  - { name: a, match: /a, per: ip, limits: 10/minute }
  - { name: b, match: /a, per: ip, limits: [5/second, 20/minute] }
`, "warning 20/minute")
	f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - { name: a, match: [/a, /b], per: [ip, user], when: { role: [x, y] }, quota: 10/day }
  - { name: b, match: [/b, /a], per: [user, ip], when: { role: [y, x] }, quota: 20/day }
`, "warning 20/day")
	// Something is different.
	f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - { name: a, match: /a, per: ip, limits: 10/minute }
  - { name: b, match: /a, per: ip, limits: 100/hour }
  - { name: c, match: /a/, per: ip, limits: 10/minute }
  - { name: d, match: /a, per: user, limits: 10/minute }
  - { name: e, match: /a, per: ip, when: { role: x }, limits: 10/minute }
  - { name: f, match: /a, per: ip, unless: { role: x }, limits: 10/minute }
  - { name: g, match: /a, per: ip, limits: 10/minute, cost: 5 }
  - { name: h, match: /a, per: ip, limits: 10/minute, count: { status: 401 } }
  - { name: i, match: /a, per: ip, limits: 10/minute, mode: shadow }
  - { name: j, match: /a, per: ip, limits: 10/minute, instead_of: a }
  - { name: k, match: /a, per: ip, limits: 10/minute, mode: disabled }
`)
}
