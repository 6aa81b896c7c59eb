package lint_test

import "testing"

func TestClaimedCost(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "claimed-cost", src, want...)
	}
	f(`
rules:
  - { name: a, per: ip, limits: 100/minute, cost: { reserve: client header X-Cost, else: 10, max: 50 } }
`, "warning client header X-Cost")
	f(`
identify: { role: jwt.role }
rules:
  - name: a
    per: ip
    limits: 100/minute
    for: [{ when: { role: x }, cost: { reserve: cookie cost, else: 10, max: 50 } }]
`, "warning cookie cost")
	// It is settled, or is what the upstream works from, or is not the caller's word.
	f(`
rules:
  - { name: a, per: ip, limits: 100/minute, cost: { reserve: client header X-Cost, else: 10, max: 50, settle: response.header.X-Cost } }
  - { name: b, per: ip, limits: 100/minute, cost: { reserve: body.max_tokens, else: 10, max: 50 } }
  - { name: c, per: ip, limits: 100/minute, cost: { reserve: header X-Cost, else: 10, max: 50 } }
  - { name: d, per: ip, limits: 100/minute, cost: 5 }
`)
}
