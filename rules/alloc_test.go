package rules

import (
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// few is a front end that knows little and allocates nothing.
type few struct{}

func (few) Value(name string) (string, bool) {
	switch name {
	case "ip", "addr":
		return "203.0.113.7", true
	case "header X-User":
		return "user-123456789", true
	case "header X-Plan":
		return "premium", true
	case "header X-Rpm":
		return "5000", true
	case "body.max_tokens":
		return "512", true
	}
	return "", false
}

const allocRules = `
identify:
  user: header X-User
  who: [client header X-Api-Key, header X-User]
  plan: header X-Plan
  order: "path {id}"
lists: { partners: [198.51.100.0/24, "2001:db8::/32"] }
exempt: [{ match: /healthz }, { when: { ip: in partners } }]
rules:
  - { name: site, per: everyone, limits: { rate: 10000/second, burst: 12000, algorithm: token_bucket } }
  - { name: api, match: /api/, per: user, limits: [100/minute, 1000/hour], for: [{ when: { plan: premium }, limits: 5000/minute }] }
  - { name: orders, match: "POST /api/orders/{id}", per: [user, route], limits: 20/second }
`

const wideRules = allocRules + `
  - { name: parts, per: [who, ip, method], limits: 5/second, block: 1m, candidate: 4/second }
  - { name: order, match: "/api/orders/{id}", per: [order, plan], limits: 5/second, over: { soft: 10% } }
  - { name: rpm, per: user, limits: { from: header X-Rpm, per: minute, max: 10000, else: 100 }, instead_of: ghost }
  - { name: ghost, per: user, limits: 1/second }
  - { name: chat, per: user, limits: 100000/minute, cost: { reserve: body.max_tokens, else: 1000, max: 32000 }, enforce: 50% }
  - { name: bots, when: { plan: "free-*" }, unless: { user: in partners }, per: ip, limits: 1/second }
  - { name: banned, when: { ip: 192.0.2.0/24 }, deny: true }
  - { name: tried, per: plan, limits: 3/second, mode: shadow }
`

// Matching makes no garbage, whatever the rules say, as long as keys are short.
func TestAllocMatch(t *testing.T) {
	set := parse(t, wideRules, Config{})
	live := NewLive(set)
	r := new(tidegate.Request)
	v := few{}
	dst := make([]tidegate.Check, 0, 32)
	match := func() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Values = "POST", "shop.example.com", "/api/orders/4711", v
		dst = live.Match(r, dst[:0])
	}
	match()
	if len(dst) < 11 {
		t.Fatalf("held to only\n%s", show(dst))
	}
	testdep.SkipUnderRace(t)
	if n := testing.AllocsPerRun(1000, match); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
