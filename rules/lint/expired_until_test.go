package lint_test

import "testing"

func TestExpiredUntil(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "expired-until", src, want...)
	}
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, limits: 5/minute, for: [{ when: { role: x }, limits: 9/minute, until: 2026-11-15T12:00:00Z }] }
`, "warning 2026-11-15T12:00:00Z")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, limits: 5/minute, for: [{ when: { role: x }, limits: 9/minute, until: 2026-11-15T12:00:01Z }] }
`)
	// Later by the clock on the wall, earlier by that of the world.
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, limits: 5/minute, for: [{ when: { role: x }, limits: 9/minute, until: 2026-11-15T20:00:00+09:00 }] }
`, "warning 2026-11-15T20:00:00+09:00")
}
