package lint_test

import "testing"

func TestDomainDiffers(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-differs", src, want...)
	}
	f(`
descriptors:
  - { key: a, value: x*y, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: x*y*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: xy*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, rate_limit: { unit: week, requests_per_unit: 1 } }
  - { key: c, rate_limit: { unit: day, requests_per_unit: 268435455 } }
  - { key: d, rate_limit: { unit: day, requests_per_unit: 268435456 } }
`, "warning x*y", "warning x*y*", "warning 1", "warning 268435456")
}
