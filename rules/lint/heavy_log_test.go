package lint_test

import "testing"

func TestHeavyLog(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "heavy-log", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 5000/hour, algorithm: sliding_log } }
`, "warning 5000/hour")
	f(`
rules:
  - { name: a, per: ip, limits: [5000/hour, { rate: 1000/minute, algorithm: sliding_log }] }
  - { name: b, per: everyone, limits: { rate: 5000/hour, algorithm: sliding_log } }
  - { name: c, per: ip, limits: { rate: 5000/hour, algorithm: sub_windows, ceiling: true } }
`)
}
