package lint_test

import "testing"

func TestConsistencyNeeds(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "consistency-needs", src, want...)
	}
	f(`
rules:
  - { name: a, per: everyone, limits: 1000/minute, consistency: leased }
`, "warning 1000/minute")
	f(`
rules:
  - { name: a, per: everyone, limits: { rate: 1000/second, burst: 3, algorithm: token_bucket }, consistency: leased }
`, "warning 1000/second")
	f(`
instances: 5
rules:
  - { name: a, per: ip, limits: { rate: 19/hour, algorithm: fixed_window }, consistency: leased }
`, "warning 19/hour")
	f(`
rules:
  - { name: a, per: ip, concurrency: { slots: 5, lease: 30s }, consistency: leased }
`, "warning concurrency")
	f(`
rules:
  - { name: a, per: ip, limits: 10/minute, consistency: eventual }
`, "warning 10/minute")
	f(`
rules:
  - { name: a, per: ip, concurrency: { slots: 5, lease: 30s }, consistency: eventual }
`, "warning concurrency")
	f(`
instances: 5
rules:
  - { name: a, per: everyone, limits: { rate: 1000/second, burst: 20, algorithm: token_bucket }, consistency: leased }
  - { name: b, per: ip, quota: 1000/day, consistency: leased }
  - { name: c, per: ip, limits: 1000/minute, consistency: eventual }
  - { name: d, per: ip, limits: 10/minute, consistency: strict }
  - { name: e, per: ip, limits: 10/minute }
`)
	// What is said for all rules holds where it can.
	f(`
defaults: { consistency: leased }
rules:
  - { name: a, per: ip, limits: 10/minute }
  - { name: b, per: ip, limits: 10/hour }
`)
}
