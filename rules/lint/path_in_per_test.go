package lint_test

import "testing"

func TestPathInPer(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "path-in-per", src, want...)
	}
	f(`
rules:
  - { name: a, match: /api/, per: [ip, path], limits: 5/minute }
`, "error path")
	f(`
rules:
  - { name: a, per: path, limits: 5/minute }
`, "error path")
	f(`
identify: { where: [header X-Where, path] }
rules:
  - { name: a, match: "/a/{id}", per: [ip, where], limits: 5/minute }
`, "error where")
	f(`
rules:
  - { name: a, match: /api/, per: [ip, route], limits: 5/minute }
`)
	// Few paths, which the operator has written.
	f(`
rules:
  - { name: a, match: [/a, /b], per: [ip, path], limits: 5/minute }
`)
	f(`
rules:
  - { name: a, match: /api/, per: ip, when: { path: /api/x }, limits: 5/minute }
`)
	f(`
rules:
  - { name: a, match: /api/, per: [ip, path], limits: 5/minute, mode: disabled }
`)
}
