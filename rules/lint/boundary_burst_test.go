package lint_test

import "testing"

func TestBoundaryBurst(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "boundary-burst", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: [5/second, { rate: 10/minute, algorithm: fixed_window }] }
`, "warning 10/minute")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, limits: 5/second, for: [{ when: { role: x }, limits: { rate: 10/minute, algorithm: fixed_window } }] }
`, "warning 10/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [5/second, { rate: 10/minute, algorithm: sliding_window }], quota: 100/day }
  - { name: b, per: ip, limits: { rate: 10/minute, algorithm: fixed_window }, mode: disabled }
`)
}
