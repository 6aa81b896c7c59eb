package lint_test

import "testing"

func TestInsteadOfNothing(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "instead-of-nothing", src, want...)
	}
	f(`
rules:
  - { name: a, match: /api, per: ip, limits: 5/minute }
  - { name: b, match: POST /api/events, per: ip, limits: 50/minute, instead_of: a }
`, "warning a")
	f(`
rules:
  - { name: a, match: GET /api/, per: ip, limits: 5/minute }
  - { name: b, match: POST /api/events, per: ip, limits: 50/minute, instead_of: [a] }
`, "warning a")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, match: /api/, per: ip, when: { role: free }, limits: 5/minute }
  - { name: b, match: /api/, per: ip, when: { role: pro }, limits: 50/minute, instead_of: a }
`, "warning a")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, match: /api/, per: ip, unless: { role: pro }, limits: 5/minute }
  - { name: b, match: /api/, per: ip, when: { role: pro }, limits: 50/minute, instead_of: a }
`, "warning a")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, match: /api/, per: ip, limits: 5/minute }
  - { name: b, match: POST /api/events, per: ip, limits: 50/minute, instead_of: a }
  - { name: c, match: "/{any}/events", per: ip, when: { role: pro }, limits: 50/minute, instead_of: a }
  - { name: d, per: ip, limits: 50/minute, instead_of: c }
`)
}
