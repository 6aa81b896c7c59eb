package lint_test

import "testing"

func TestDomainExemptValue(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-exempt-value", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: x }
  - { key: a, value: y, rate_limit: { unlimited: true } }
  - { key: a, value: z, descriptors: [{ key: b, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: other, value: x }
`, "warning x", "warning z")
	f(`
descriptors:
  - { key: a, value: x* , rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: xy }
  - { key: a, value: yx }
  - { key: b, rate_limit: { unlimited: true } }
  - { key: b, value: x }
`, "warning xy")
}
