package lint_test

import "testing"

func TestDomainShadowReplaces(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-shadow-replaces", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: { name: one, unit: minute, requests_per_unit: 1 } }
  - { key: b, shadow_mode: true, rate_limit: { replaces: [{ name: one }], unit: minute, requests_per_unit: 1 } }
  - { key: c, rate_limit: { replaces: [{ name: one }], unlimited: true } }
  - { key: d, rate_limit: { replaces: [{ name: one }], unit: minute, requests_per_unit: 1 } }
  - { key: e, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
`, "warning one", "warning one")
}
