package lint_test

import "testing"

func TestUnusedIdentity(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "unused-identity", src, want...)
	}
	f(`
identify: { user: jwt.sub, role: jwt.role }
rules:
  - { name: a, per: user, limits: 10/minute }
`, "warning role")
	// Every place in which one can be used.
	f(`
identify: { a: jwt.a, b: jwt.b, c: jwt.c, d: jwt.d, e: jwt.e, f: jwt.f, g: jwt.g, h: jwt.h, i: jwt.i }
classes: [{ name: first, when: { h: x }, unless: { i: x } }, { name: rest }]
exempt: [{ when: { f: x }, unless: { g: x } }]
rules:
  - { name: a, per: [ip, a], when: { b: x }, unless: { c: x }, limits: 10/minute, set_aside: { first: 10% }, for: [{ when: { d: x }, unless: { e: x }, limits: 5/minute }] }
`)
}
