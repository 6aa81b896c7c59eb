package lint_test

import "testing"

func TestVictimLockout(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "victim-lockout", src, want...)
	}
	f(`
identify: { name: body.name }
rules:
  - { name: a, match: POST /login, per: name, limits: 5/15m, count: { status: 401 } }
`, "warning name")
	f(`
identify: { name: basic.user }
rules:
  - { name: a, match: POST /login, per: name, limits: 5/15m, block: 1h }
`, "warning name")
	f(`
identify: { name: "path {name}", tenant: query tenant }
rules:
  - { name: a, match: "POST /login/{name}", per: [tenant, name], limits: 5/15m, block: 1h }
`, "warning per")
	// Each address has tries of its own.
	f(`
identify: { name: body.name }
rules:
  - { name: a, match: POST /login, per: [ip, name], limits: 5/15m, count: { status: 401 } }
`)
	// What only its owner knows.
	f(`
identify: { session: cookie session, user: jwt.sub }
rules:
  - { name: a, match: POST /a, per: session, limits: 5/15m, block: 1h }
  - { name: b, match: POST /a, per: user, limits: 5/15m, block: 1h }
`)
	// No lasting harm.
	f(`
identify: { name: body.name }
rules:
  - { name: a, match: POST /login, per: name, limits: 5/15m }
`)
}
