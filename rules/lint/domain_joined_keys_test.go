package lint_test

import "testing"

func TestDomainJoinedKeys(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-joined-keys", src, want...)
	}
	f(`
descriptors:
  - { key: a, value: b_x, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: a_b, value: x, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: c, value: d, descriptors: [{ key: e, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: c_d.e, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: c, rate_limit: { unit: minute, requests_per_unit: 1 } }
`, "warning a_b", "warning e")
}
