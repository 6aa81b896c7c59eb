package lint_test

import "testing"

func TestTierByClaimedValue(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "tier-by-claimed-value", src, want...)
	}
	// A word that anybody can say.
	f(`
identify: { plan: client header X-Plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: pro }, limits: 1000/minute }]
`, "error plan")
	f(`
identify: { plan: client header X-Plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: present }, limits: unlimited }]
`, "error plan")
	f(`
identify: { plan: [jwt.plan, cookie plan] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: "pro-*" }, limits: [20/minute, 100/hour] }]
`, "error plan")
	f(`
identify: { plan: client header X-Plan }
lists: { plans: [pro, max] }
rules:
  - name: a
    per: ip
    concurrency: { slots: 2, lease: 30s }
    for: [{ when: { plan: in plans }, concurrency: { slots: 20, lease: 30s } }]
`, "error plan")
	// A long word may be a secret.
	f(`
identify: { key: client header X-Api-Key }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { key: 7f3a9c1e5b7d2468ace0 }, limits: 1000/minute }]
`, "warning key")
	// What is left out.
	f(`
identify: { user: jwt.sub }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { user: absent }, limits: 1000/minute }]
`, "error user")
	f(`
identify: { role: jwt.role }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ unless: { role: free }, limits: 1000/minute }]
`, "error role")
	// A rule that is not held to those who know a word.
	f(`
identify: { internal: client header X-Internal }
rules:
  - { name: a, per: ip, unless: { internal: "yes" }, limits: 10/minute }
`, "error internal")
	f(`
identify: { internal: client header X-Internal }
rules:
  - { name: a, per: ip, unless: { internal: 7f3a9c1e5b7d2468ace0 }, limits: 10/minute }
`, "warning internal")
	// Verified, or not the caller's to say.
	f(`
identify: { plan: jwt.plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: pro }, limits: 1000/minute }]
`)
	f(`
identify: { plan: header X-Plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: pro }, limits: unlimited }]
`)
	f(`
lists: { office: [203.0.113.0/24] }
identify: { debug: client header X-Debug }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { ip: in office, debug: present }, limits: unlimited }]
`)
	f(`
identify: { user: jwt.sub, role: jwt.role }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { user: present }, unless: { role: free }, limits: 1000/minute }]
`)
	// A caller that asks for something else is held to something else.
	f(`
identify: { model: body.model }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { model: small }, limits: 1000/minute }, { when: { method: GET }, limits: 100/minute }]
`)
	// A caller that claims to be a robot gets less.
	f(`
identify: { agent: client header User-Agent }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { agent: "*bot*" }, limits: 5/minute }]
`)
	f(`
identify: { agent: client header User-Agent }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { agent: "*bot*" }, limits: [10/minute, 20/hour] }]
`)
	// Those with a key are left to another rule.
	f(`
identify: { key: client header X-Api-Key }
rules:
  - { name: a, per: ip, unless: { key: present }, limits: 10/minute }
`)
	// Its time has passed.
	f(`
identify: { plan: client header X-Plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: pro }, limits: 1000/minute, until: 2026-01-01T00:00:00Z }]
`)
	// More in every way in which there can be more.
	for _, more := range []string{
		"limits: 100/hour", "limits: { rate: 10/minute, burst: 20, algorithm: token_bucket }", "limits: { from: jwt.rpm, per: minute, max: 100, else: 5 }",
		"quota: 200/day", "quota: 100/week", "over: { soft: 10% }", "cost: 1",
	} {
		f(`
identify: { plan: client header X-Plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    quota: 100/day
    cost: 2
    for: [{ when: { plan: pro }, `+more+` }]
`, "error plan")
	}
	for _, less := range []string{
		"limits: [10/minute, 100/hour]", "limits: 5/hour", "limits: { from: jwt.rpm, per: minute, max: 10, else: 5 }",
		"quota: 100/day", "over: hard", "cost: 5",
	} {
		f(`
identify: { plan: client header X-Plan }
rules:
  - name: a
    per: ip
    limits: 10/minute
    quota: 100/day
    cost: 2
    for: [{ when: { plan: pro }, ` + less + ` }]
`)
	}
	// A class that anybody can claim, and one that is verified or is what the request asks for.
	f(`
identify: { urgent: client header X-Urgent }
classes: [{ name: first, when: { urgent: "yes" } }, { name: rest }]
rules:
  - { name: a, per: ip, limits: 10/minute, set_aside: { first: 20% } }
`, "error urgent")
	f(`
identify: { user: jwt.sub }
classes: [{ name: first, unless: { user: present } }, { name: rest }]
rules:
  - { name: a, per: ip, limits: 10/minute, set_aside: { first: 20% } }
`, "error user")
	f(`
identify: { plan: jwt.plan }
classes: [{ name: first, match: POST /charges }, { name: second, when: { plan: pro } }, { name: rest }]
rules:
  - { name: a, per: ip, limits: 10/minute, set_aside: { first: 20% } }
`)
	// Nobody knows what is in a file.
	f(`
identify: { plan: client header X-Plan }
lists: { plans: file plans.txt }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for: [{ when: { plan: in plans }, limits: 1000/minute }]
`, "warning plan")
}
