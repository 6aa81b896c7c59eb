package lint_test

import "testing"

func TestDomainShadowedStar(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-shadowed-star", src, want...)
	}
	f(`
descriptors:
  - { key: a, value: x*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: xy*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: x*y, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: xy, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: y*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: "*x", rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, value: xy*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, value: x*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, value: x**, rate_limit: { unit: minute, requests_per_unit: 1 } }
`, "warning xy*", "warning x*y", "warning x**")
}
