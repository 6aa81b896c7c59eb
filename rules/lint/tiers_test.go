package lint_test

import (
	"strings"
	"testing"
)

// A name whose values are those of a table cannot be invented, and without the table it can.
func TestLintKnowsRows(t *testing.T) {
	const chat = `
identify: { user: jwt.sub, model: body.model }
rules:
  - { name: a, match: POST /chat, per: [user, model], missing: skip, limits: %s }
  - { name: b, match: POST /chat, per: model, limits: %s }
  - { name: site, per: everyone, limits: 1000/second }
`
	table := "{ by: model, rows: { large: 10/minute, small: 20/minute }, else: 5/minute }"
	with := func(limits string) string { return strings.ReplaceAll(chat, "%s", limits) }
	finds(t, "invented-key", with("10/minute"), "warning per", "warning model")
	finds(t, "invented-key", with(table))
	finds(t, "escapable-route", `
identify: { model: body.model }
rules: [{ name: b, match: POST /chat, per: model, limits: 5/minute }]
`, "error POST /chat")
	finds(t, "escapable-route", `
identify: { model: body.model }
rules: [{ name: b, match: POST /chat, per: model, limits: { by: model, rows: { large: 9/minute }, else: 5/minute } }]
`)
	// An unlimited row, or one that is for all others, is a way out all the same.
	finds(t, "escapable-route", `
identify: { model: body.model }
rules: [{ name: b, match: POST /chat, per: ip, limits: { by: model, rows: { large: 9/minute }, else: unlimited } }]
`, "error POST /chat")
	finds(t, "one-takes-all", `
identify: { model: body.model }
rules: [{ name: b, match: POST /chat, per: model, limits: { by: model, rows: { large: 9/minute }, else: 5/minute } }]
`, "warning model")
	finds(t, "loose-spelling", `
identify: { user: body.user }
rules: [{ name: b, match: POST /chat, per: [ip, user], limits: { by: user, rows: { root: 9/minute }, else: 5/minute } }]
`)
}

// A tier that a caller claims is told once, where the rule says where it comes from.
func TestLintOfTiers(t *testing.T) {
	const src = `
identify: { plan: %s, user: jwt.sub }
tiers:
  free: { limits: 5/minute, quota: 100/month }
  pro: { limits: 50/minute }
  huge: { limits: 500/minute }
rules:
  - { name: a, per: user, tier: { from: plan, else: free }, for: [{ when: { user: acme }, limits: 900/minute }] }
`
	finds(t, "tier-by-claimed-value", strings.ReplaceAll(src, "%s", "client header X-Plan"), "error plan")
	finds(t, "tier-by-claimed-value", strings.ReplaceAll(src, "%s", "jwt.plan"))
	for _, check := range []string{"shadowed-branch", "never-applies", "duplicate-meaning", "unused-identity", "never-bites"} {
		finds(t, check, strings.ReplaceAll(src, "%s", "jwt.plan"))
	}
	// A branch for the same value as a tier is not in its shadow.
	finds(t, "shadowed-branch", `
identify: { plan: jwt.plan, user: jwt.sub }
tiers: { free: { limits: 5/minute }, pro: { limits: 50/minute } }
rules:
  - { name: a, per: user, tier: { from: plan, else: free }, for: [{ when: { plan: pro }, limits: 900/minute }] }
`)
	finds(t, "unused-identity", `
identify: { plan: jwt.plan, user: jwt.sub }
tiers: { free: { limits: 5/minute } }
rules: [{ name: a, per: user, tier: { from: plan, else: free } }]
`)
	finds(t, "expired-until", `
identify: { plan: jwt.plan, user: jwt.sub }
tiers: { free: { limits: 5/minute }, pro: { limits: 50/minute } }
rules:
  - { name: a, per: user, tier: { from: plan, else: free }, for: [{ when: { user: acme }, limits: 900/minute, until: 2020-01-01T00:00:00Z }] }
`, "warning 2020-01-01T00:00:00Z")
}
