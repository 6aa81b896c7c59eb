package lint_test

import "testing"

func TestLooseSpelling(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "loose-spelling", src, want...)
	}
	f(`
identify: { account: body.email }
rules:
  - { name: a, match: POST /login, per: account, limits: 5/15m, count: { status: 401 } }
`, "warning account")
	f(`
identify: { account: lower trim body.email }
rules:
  - { name: a, match: POST /login, per: account, limits: 5/15m, count: { status: 401 } }
`)
	// One of the two is not enough.
	f(`
identify: { a: trim body.email, b: lower body.email }
rules:
  - { name: a, match: POST /login, per: a, limits: 5/15m }
  - { name: b, match: POST /login, per: [ip, b], limits: 5/15m }
`, "warning a", "warning b")
	// A guard against guessing counts accounts, whatever they are called.
	f(`
identify: { id: body.customer_no, name: "path {x}", user: basic.user, q: query login }
rules:
  - { name: a, match: "POST /login/{x}", per: id, limits: 5/15m, block: 1h }
  - { name: b, match: "POST /login/{x}", per: name, limits: 5/15m, count: { status: 401 } }
  - { name: c, match: "POST /login/{x}", per: user, limits: 5/15m }
  - { name: d, match: "POST /login/{x}", per: q, limits: 5/15m }
`, "warning id", "warning name", "warning user", "warning q")
	// One that falls back on an address has a way that can be spelled.
	f(`
identify: { account: [jwt.sub, body.user.e-mail] }
rules:
  - { name: a, match: POST /reset, per: account, limits: 3/hour }
`, "warning account")
	// What is no account, or has one spelling.
	f(`
identify: { model: body.model, user: jwt.sub, key: client header X-Api-Key, id: "path {id}" }
rules:
  - { name: a, match: "POST /a/{id}", per: [user, model], limits: 5/15m }
  - { name: b, match: "POST /a/{id}", per: key, limits: 5/15m, count: { status: 401 } }
  - { name: c, match: "POST /a/{id}", per: id, limits: 5/15m }
`)
}
