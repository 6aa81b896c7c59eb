package lint_test

import (
	"testing"

	"tidegate.dev/tidegate/rules/lint"
)

func TestQuotaDoor(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "quota-door", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 5/second, algorithm: token_bucket } }
  - { name: b, match: /b, deny: true }
  - { name: c, match: /c, per: ip, limits: unlimited }
  - { name: d, match: /d, per: ip, limits: 5/second, consistency: leased }
`)
	f(`
rules:
  - { name: a, per: ip, limits: 5/second }
`, "warning 5/second")
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 5/second, algorithm: token_bucket }, consistency: split }
`, "warning 5/second")
	f(`
rules:
  - { name: a, per: ip, limits: [5/second, 100/minute] }
  - { name: b, per: ip, concurrency: { slots: 2, lease: 30s } }
  - { name: c, per: ip, limits: { rate: 5/second, algorithm: token_bucket }, block: 5m }
`, "warning a", "warning b", "warning c")
	f(`
classes: [{ name: first, match: POST / }, { name: rest }]
rules:
  - { name: a, per: ip, limits: { rate: 5/second, algorithm: token_bucket }, set_aside: { first: 20% } }
`, "warning first")
}

func TestQuotaDoorOfDomains(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		findsInDomain(t, "quota-door", src, want...)
	}
	f(`
descriptors:
  - { key: a, rate_limit: { unit: second, requests_per_unit: 5, tidegate: { algorithm: token_bucket } } }
  - { key: b, rate_limit: { unlimited: true } }
  - { key: c, shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 5 } }
  - { key: d, rate_limit: { unit: second, requests_per_unit: 0 } }
`)
	f(`
descriptors:
  - { key: a, rate_limit: { unit: second, requests_per_unit: 5 } }
  - { key: b, rate_limit: { unit: second, requests_per_unit: 5, tidegate: { algorithm: token_bucket, consistency: split } } }
  - { key: c, rate_limit: { tidegate: { limits: [5/second, 100/minute] } } }
`, "warning rate_limit", "warning rate_limit", "warning rate_limit")
}

// Nobody who did not ask for the door is told of it.
func TestQuotaDoorOnlyOnRequest(t *testing.T) {
	for _, p := range lint.Text("rules.yaml", []byte("version: 1\nrules: [{ name: a, per: ip, limits: 5/minute }]\n"), lint.Options{Now: now}) {
		if p.Check == "quota-door" {
			t.Errorf("%v", p)
		}
	}
}
