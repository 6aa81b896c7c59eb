package lint_test

import "testing"

func TestCandidateEqualsLive(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "candidate-equals-live", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: [5/second, 100/minute], candidate: 100/minute }
`, "warning 100/minute")
	f(`
rules:
  - { name: a, per: ip, limits: 100/minute, candidate: 80/minute }
  - { name: b, per: ip, limits: 100/minute, candidate: { rate: 100/minute, algorithm: token_bucket } }
  - { name: c, per: ip, limits: 60/minute, candidate: 60/hour }
  - { name: d, per: ip, limits: { rate: 100/minute, burst: 10, algorithm: token_bucket }, candidate: { rate: 100/minute, burst: 20, algorithm: token_bucket } }
`)
}
