package lint_test

import "testing"

func TestDenyEverything(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "deny-everything", src, want...)
	}
	f(`
rules:
  - { name: a, deny: true }
`, "error a")
	f(`
rules:
  - { name: a, match: [/x, /], deny: true, respond: { status: 503 } }
`, "error a")
	f(`
rules:
  - { name: a, match: /x, deny: true }
  - { name: b, deny: true, unless: { ip: 10.0.0.0/8 } }
  - { name: c, deny: true, mode: shadow }
  - { name: d, match: POST /, deny: true }
`)
	// A list of what is let in, and the rest is refused.
	f(`
rules:
  - { name: a, deny: true }
  - { name: b, match: /api/, per: ip, limits: 5/minute, instead_of: a }
`)
	f(`
rules:
  - { name: a, deny: true }
  - { name: b, match: /api/, per: ip, limits: 5/minute, instead_of: a, mode: shadow }
`, "error a")
}
