package lint_test

import "testing"

func TestDomainMetricValues(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "domain-metric-values", src, want...)
	}
	f(`
descriptors:
  - { key: a, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: b, value: x, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: c, value_to_metric: true, descriptors: [{ key: d, value: x, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
  - { key: e, value: x*, share_threshold: true, value_to_metric: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: f, descriptors: [{ key: g, value: x, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 1 } }] }
`, "warning a", "warning c", "warning g")
}
