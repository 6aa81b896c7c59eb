package lint_test

import "testing"

func TestDomainReplacesNothing(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-replaces-nothing", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: { name: one, unit: minute, requests_per_unit: 1 } }
  - { key: b, rate_limit: { replaces: [{ name: one }, { name: two }], unit: minute, requests_per_unit: 1 } }
  - { key: c, rate_limit: { unlimited: true, replaces: [{ name: three }] } }
`, "warning two", "warning three")
}
