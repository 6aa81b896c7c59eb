package lint_test

import "testing"

func TestIpPrefix(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "ip-prefix", src, want...)
	}
	f(`
identify: { net: ip /32 /128 }
rules:
  - { name: a, per: net, limits: 5/second }
`, "warning ip /32 /128")
	f(`
identify: { net: ip /8 /48 }
rules:
  - { name: a, per: net, limits: 5/second }
`, "warning ip /8 /48")
	f(`
identify: { net: [jwt.sub, ip /24 /20] }
rules:
  - { name: a, per: net, limits: 5/second }
`, "warning ip /24 /20")
	f(`
identify: { net: ip /24 /48, one: ip /32 /64, wide: ip /16 /32 }
rules:
  - { name: a, per: net, limits: 5/second }
  - { name: b, per: one, limits: 5/second }
  - { name: c, per: wide, limits: 5/second }
`)
	// A condition compares whole addresses.
	f(`
identify: { net: ip /8 /8 }
rules:
  - { name: a, per: ip, when: { net: 10.0.0.0/8 }, limits: 5/second }
`)
}
