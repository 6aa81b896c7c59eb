package lint_test

import "testing"

func TestNeverApplies(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "never-applies", src, want...)
	}
	// Conditions that exclude each other.
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, when: { role: free }, unless: { role: [free, trial] }, limits: 5/minute }
`, "warning a")
	f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - { name: a, per: ip, when: { role: free, user: present }, unless: { user: present }, limits: 5/minute }
`, "warning a")
	f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - { name: a, per: ip, when: { role: free }, unless: { role: free, user: bob }, limits: 5/minute }
  - { name: b, per: ip, when: { role: [free, paid] }, unless: { role: free }, limits: 5/minute }
`)
	// An exemption.
	f(`
exempt: [{ match: /static/ }]
rules:
  - { name: a, match: [GET /static/img/, /static/js/], per: ip, limits: 5/minute }
`, "warning a")
	f(`
exempt: [{ match: /static/ }, { match: /x, when: { ip: 10.0.0.0/8 } }]
rules:
  - { name: a, match: [/static/, /other/], per: ip, limits: 5/minute }
  - { name: b, match: /static/, deny: true }
  - { name: c, match: /x, per: ip, limits: 5/minute }
`)
	// A rule that always takes its place.
	f(`
rules:
  - { name: a, match: /a/b, per: ip, limits: 5/minute }
  - { name: b, match: /a/, per: ip, limits: 50/minute, instead_of: a }
`, "warning a")
	f(`
identify: { user: jwt.sub }
rules:
  - { name: a, match: /a/, per: ip, limits: 5/minute }
  - { name: b, match: /a/b, per: ip, limits: 50/minute, instead_of: a }
  - { name: c, match: /a/, per: user, missing: skip, limits: 50/minute, instead_of: a }
  - { name: d, match: /a/, per: ip, when: { user: x }, limits: 50/minute, instead_of: a }
  - { name: e, match: /a/, per: ip, limits: 50/minute, instead_of: a, mode: shadow }
  - { name: g, match: /a/, per: ip, limits: 50/minute, instead_of: a, enforce: 25% }
`)
	// A rule that refuses all the same.
	f(`
rules:
  - { name: a, match: /a/b, per: ip, limits: 5/minute }
  - { name: b, match: /a/, deny: true }
`, "warning a")
	f(`
rules:
  - { name: a, match: /a/, per: ip, limits: 5/minute }
  - { name: b, match: /a/b, deny: true }
  - { name: c, match: /a/, deny: true, when: { ip: 10.0.0.0/8 } }
`)
	// Values are compared as the identity spells them.
	f(`
identify: { plan: lower jwt.plan, role: jwt.role }
rules:
  - { name: a, per: ip, when: { plan: Pro }, unless: { plan: pro }, limits: 5/minute }
  - { name: b, per: ip, when: { host: Shop.Example. }, unless: { host: shop.example }, limits: 5/minute }
  - { name: c, per: ip, when: { role: Pro }, unless: { role: pro }, limits: 5/minute }
`, "warning a", "warning b")
	// An access rule that is replaced refuses nothing there.
	f(`
rules:
  - { name: a, match: /a/b/, per: ip, limits: 5/minute, instead_of: b }
  - { name: b, match: /a/, deny: true }
`)
	f(`
rules:
  - { name: a, match: /a/b/, per: ip, limits: 5/minute }
  - { name: b, match: /a/, deny: true }
  - { name: c, match: /a/b/c, per: ip, limits: 5/minute, instead_of: b }
`)
}
