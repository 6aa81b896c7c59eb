package lint_test

import "testing"

func TestSoftOver100(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "soft-over-100", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: 10/minute, over: { soft: 110% } }
`, "warning over")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, limits: 10/minute, for: [{ when: { role: x }, over: { soft: 200% } }] }
`, "warning over")
	f(`
rules:
  - { name: a, per: ip, limits: 10/minute, over: { soft: 100% } }
  - { name: b, per: ip, limits: 10/minute, over: hard }
  - { name: c, per: ip, limits: 10/minute, over: { elastic: { while: cpu < 80%, up_to: 3x } } }
`)
}
