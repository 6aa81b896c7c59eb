package lint_test

import "testing"

func TestDomainStarInKey(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-star-in-key", src, want...)
	}
	f(`
descriptors:
  - { key: a*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, value: a*, descriptors: [{ key: "*", value: x, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
`, "warning a*", `warning "*"`)
}
