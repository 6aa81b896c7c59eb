package lint_test

import "testing"

func TestDomainMissingNumber(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-missing-number", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: { unit: minute } }
  - { key: b, rate_limit: { unit: minute, requests_per_unit: 0 } }
  - { key: c, rate_limit: { unlimited: true } }
  - { key: d, rate_limit: { tidegate: { limits: 5/minute } } }
  - { key: e, descriptors: [{ key: f, rate_limit: { unit: hour, requests_per_unit: } }] }
`, "error rate_limit", "error rate_limit")
}
