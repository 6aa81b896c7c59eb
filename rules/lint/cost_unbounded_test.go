package lint_test

import "testing"

func TestCostUnbounded(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "cost-unbounded", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: 100/minute, cost: { reserve: body.max_tokens, else: 10, settle: response.body.used } }
`, "warning body.max_tokens")
	f(`
rules:
  - { name: a, per: ip, limits: 100/minute, cost: { reserve: query n, else: 10, min: 5 } }
`, "warning query n")
	f(`
rules:
  - { name: a, per: ip, limits: 100/minute, cost: { reserve: body.max_tokens, else: 10, max: 50 } }
  - { name: b, per: ip, limits: 100/minute, cost: { reserve: jwt.cost, else: 10 } }
  - { name: c, per: ip, limits: 100/minute, cost: { else: 10, settle: response.body.used } }
`)
}
