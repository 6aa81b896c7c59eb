package lint_test

import "testing"

func TestOneTakesAll(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "one-takes-all", src, want...)
	}
	f(`
rules:
  - { name: a, match: POST /a, per: everyone, limits: 5/second }
`, "warning everyone")
	f(`
rules:
  - { name: a, match: [/a, /b], per: route, limits: 5/second }
  - { name: b, match: /a, per: ip, limits: 5/second }
`, "warning route")
	f(`
rules:
  - { name: a, per: everyone, limits: 5/second }
`, "warning everyone")
	f(`
rules:
  - { name: a, match: /a, per: everyone, limits: 5/second }
  - { name: b, per: ip, limits: 5/second, mode: shadow }
`, "warning everyone")
	f(`
rules:
  - { name: a, match: /a/b, per: everyone, limits: 5/second }
  - { name: b, match: /a/, per: ip, limits: 5/second }
`)
	// The last resort of a whole site.
	f(`
rules:
  - { name: a, per: everyone, limits: 5/second }
  - { name: b, match: /a/, per: ip, limits: 5/second }
`)
	f(`
rules:
  - { name: a, match: /a, per: everyone, limits: 5/second, mode: shadow }
  - { name: b, match: /b, deny: true }
`)
}
