package lint_test

import "testing"

func TestDomainOuterLimit(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-outer-limit", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 1 }, descriptors: [{ key: b, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: c, rate_limit: { unlimited: true }, descriptors: [{ key: b, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: d, descriptors: [{ key: b, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
`, "warning rate_limit")
}
