package lint_test

import "testing"

func TestQueueLongerThanClients(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "queue-longer-than-clients", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 1/second, algorithm: leaky_bucket }, queue: { places: 100, max_wait: 61s } }
`, "warning queue")
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 1/second, algorithm: leaky_bucket }, queue: { places: 100, max_wait: 60s } }
`)
}
