package lint_test

import "testing"

func TestDomainNoEffect(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-no-effect", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: }
  - { key: b }
  - { key: c, descriptors: [{ key: d, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: e, quota_mode: true, descriptors: [{ key: d, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: f, shadow_mode: true, rate_limit: { unlimited: true } }
  - { key: g, shadow_mode: false, rate_limit: { unlimited: true } }
`, "warning rate_limit", "warning b", "warning quota_mode", "warning shadow_mode")
	f(`
descriptors:
  - { key: a, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a, value: exempt }
  - { key: b, value: x* , rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, value: xy }
  - { key: b, value: yx }
`, "warning b")
}
