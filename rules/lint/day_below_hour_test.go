package lint_test

import "testing"

func TestDayBelowHour(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "day-below-hour", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: [1000/hour, 500/day] }
`, "warning 1000/hour")
	f(`
rules:
  - { name: a, per: ip, limits: [50/hour, 50/day] }
`, "warning 50/hour")
	f(`
rules:
  - { name: a, per: ip, limits: 1000/hour, quota: 500/month }
`, "warning 1000/hour")
	// Twice a quota may come within an hour: before and after it starts anew.
	f(`
rules:
  - { name: a, per: ip, limits: 1000/hour, quota: 600/month }
`)
	f(`
rules:
  - { name: a, per: ip, limits: [51/hour, 52/day] }
`)
	// That is for never-bites.
	f(`
rules:
  - { name: a, per: ip, limits: [10/second, 1000/minute] }
`)
}
