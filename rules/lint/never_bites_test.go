package lint_test

import "testing"

func TestNeverBites(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "never-bites", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: [10/second, 1000/minute] }
`, "warning 1000/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [1000/minute, 10/second] }
`, "warning 1000/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [10/second, 600/minute], candidate: 5/minute }
`)
	// To the event, where both are exact.
	f(`
rules:
  - { name: a, per: ip, limits: [1/second, 60/minute] }
`, "warning 60/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [1/second, 59/minute] }
`)
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, algorithm: fixed_window }, { rate: 600/minute, algorithm: fixed_window }] }
`, "warning 600/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, algorithm: fixed_window }, { rate: 599/minute, algorithm: fixed_window }] }
`)
	// A fixed window is over around its boundaries.
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, algorithm: fixed_window }, { rate: 600/minute, algorithm: sliding_log }] }
`)
	// Buckets: rate and burst.
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, burst: 10, algorithm: token_bucket }, { rate: 1200/minute, burst: 20, algorithm: token_bucket }] }
`, "warning 1200/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, burst: 30, algorithm: token_bucket }, { rate: 1200/minute, burst: 20, algorithm: token_bucket }] }
`)
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, burst: 300, algorithm: token_bucket }, 800/minute] }
`)
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 10/second, burst: 100, algorithm: token_bucket }, 800/minute] }
`, "warning 800/minute")
	// A quota.
	f(`
rules:
  - { name: a, per: ip, limits: 1/hour, quota: 30/day }
`, "warning 30/day")
	f(`
rules:
  - { name: a, per: ip, limits: 1/hour, quota: 24/day }
`)
	// In a branch, with what it leaves as it is.
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, limits: 5/second, quota: 1000/day, for: [{ when: { role: x }, limits: [5/second, 500/minute] }] }
`, "warning 500/minute")
	// Numbers that are not known, or not the ones that decide.
	f(`
rules:
  - { name: a, per: ip, limits: [10/second, { from: jwt.rpm, per: minute, max: 100000, else: 1000 }] }
  - { name: b, per: ip, limits: [10/second, 1000/minute], over: { soft: 10% } }
`)
	// What others refuse counts.
	f(`
rules:
  - { name: a, per: ip, limits: [1/second, { rate: 100/minute, algorithm: sliding_log, count_rejected: true }] }
`)
	f(`
rules:
  - { name: a, per: ip, limits: [100/minute, 1000/hour] }
`)
	// A line lets as many through as it is long, and goes on.
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 1/second, algorithm: leaky_bucket }, 100/minute], queue: { places: 10, max_wait: 5s } }
`, "warning 100/minute")
	f(`
rules:
  - { name: a, per: ip, limits: [{ rate: 1/second, algorithm: leaky_bucket }, 70/minute], queue: { places: 10, max_wait: 5s } }
`)
	f(`
rules:
  - { name: a, per: ip, limits: [1/minute, { rate: 1/second, algorithm: leaky_bucket }], queue: { places: 10, max_wait: 5s } }
`)
	// What a request did cost is charged when it is known, beyond any limit.
	f(`
rules:
  - { name: a, per: ip, limits: [10/second, 1000/minute], cost: { else: 1, settle: response.header.X-Cost } }
`)
}
