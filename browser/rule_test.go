package browser

import "testing"

const trialRules = `version: 1
identify: { user: client header X-User }

rules:
  - name: orders
    match: /api/
    per: user
    limits: { rate: 5/second, burst: 10, algorithm: token_bucket }
    candidate: { rate: 1/minute, burst: 2, algorithm: token_bucket }

  - name: search
    match: GET /search
    per: user
    mode: shadow
    limits: 3/hour
`

// The page of a rule shows what is tried beside what is in force, what that would refuse, how full keys are, and where the
// rule is written.
func TestRulePages(t *testing.T) {
	s := serve(t, trialRules)
	for range 9 {
		s.send("ann", "/api/things")
		s.send("bert", "/search")
	}
	p := openAs(t, s, aliceToken)

	t.Log("a candidate")
	p.goTo("#/rule?name=orders")
	p.until("main table", "5/1s token_bucket burst 10\tdecides")
	p.until("main table", "1/1m0s token_bucket burst 2\tcandidate")
	p.until(".numbers .would", "7\nthe candidate would refuse")
	p.charted()
	p.until("main", "user=ann")
	p.until("main", "rules.yaml:5:5")
	p.until("main pre", "candidate: { rate: 1/minute, burst: 2, algorithm: token_bucket }")
	p.accessible("a candidate")

	t.Log("a shadow")
	p.goTo("#/rule?name=search")
	p.until("main table", "shadow")
	p.until(".numbers .would", "6\nthe shadow would refuse")
	p.until("#refused", "0")
	p.until("main", "The rule is in shadow mode, and refuses nobody.")
	p.until("main table:has(a)", "user=bert\t6")
	p.accessible("a shadow")
	p.press("Who would be refused")
	p.until("main table", "user=bert")
	p.checkPeace(s)
}
