package lint_test

import "testing"

func TestUnusedList(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "unused-list", src, want...)
	}
	f(`
lists: { partners: [203.0.113.0/24], staff: [bob] }
rules:
  - { name: a, per: ip, unless: { ip: in partners }, limits: 10/minute }
`, "warning staff")
	f(`
identify: { user: jwt.sub }
lists: { a: [x], b: [x], c: [x], d: [x], e: [x] }
classes: [{ name: first, when: { user: in e } }, { name: rest }]
exempt: [{ when: { user: in a } }]
rules:
  - { name: a, per: ip, when: { user: [bob, in b] }, limits: 10/minute, set_aside: { first: 10% }, for: [{ when: { user: in c }, limits: 5/minute }] }
  - { name: b, when: { user: in d }, deny: true }
`)
}
