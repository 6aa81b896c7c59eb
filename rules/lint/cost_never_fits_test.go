package lint_test

import "testing"

func TestCostNeverFits(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "cost-never-fits", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: 1000/minute, cost: { reserve: body.n, else: 10, max: 5000 } }
`, "warning cost")
	f(`
rules:
  - { name: a, per: ip, limits: { rate: 1000/minute, burst: 100, algorithm: token_bucket }, cost: { reserve: body.n, else: 10, max: 500 } }
`, "warning cost")
	f(`
rules:
  - { name: a, per: ip, limits: 1000/minute, quota: 300/day, cost: { reserve: body.n, else: 10, max: 500 } }
`, "warning cost")
	f(`
identify: { role: jwt.role }
rules:
  - name: a
    per: ip
    limits: 1000/minute
    cost: { reserve: body.n, else: 10, max: 500 }
    for: [{ when: { role: free }, limits: 100/minute }]
`, "warning cost")
	f(`
rules:
  - { name: a, per: ip, limits: 1000/minute, cost: { reserve: body.n, else: 10, max: 1000 } }
  - { name: b, per: ip, limits: 1000/minute, over: { soft: 10% }, cost: { reserve: body.n, else: 10, max: 1100 } }
  - { name: c, per: ip, limits: 1000/minute, cost: 10 }
`)
	// Without a max, cost-unbounded tells.
	f(`
rules:
  - { name: a, per: ip, limits: 1000/minute, cost: { reserve: body.n, else: 10 } }
`)
}
