package lint_test

import "testing"

func TestDomainCase(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-case", src, want...)
	}
	f(`
descriptors:
  - { key: a, value: x, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: X, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: A, value: x, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: y, descriptors: [{ key: a, value: X, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
`, "warning X", "warning A")
}
