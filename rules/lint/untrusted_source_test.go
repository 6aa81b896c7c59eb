package lint_test

import (
	"testing"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/lint"
)

func TestUntrustedSource(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "untrusted-source", src, want...)
	}
	f(`
identify: { user: jwt.sub, customer: api_key, plan: [api_key.plan, header X-Plan], loose: unverified jwt.sub }
rules:
  - { name: a, per: user, limits: 5/minute, for: [{ when: { plan: pro }, limits: 9/minute }] }
  - { name: b, per: customer, limits: 5/minute }
`, "warning jwt.sub", "warning api_key", "warning api_key.plan")
	// Also where a source has no name.
	f(`
rules:
  - { name: a, per: ip, limits: { from: api_key.rpm, per: minute, max: 100, else: 10 } }
  - { name: b, per: ip, quota: { amount: 5/month, anchor: jwt.billing_day } }
  - { name: c, per: ip, limits: 5/minute, for: [{ when: { ip: 10.0.0.0/8 }, cost: { reserve: api_key.cost, default: 1, max: 5 } }] }
`, "warning api_key.rpm", "warning jwt.billing_day", "warning api_key.cost")
	// Once, however many rules use it.
	f(`
tiers: { free: { limits: { from: api_key.rpm, per: minute, max: 100, else: 10 } } }
identify: { plan: header X-Plan }
rules:
  - { name: a, match: /a, per: ip, tier: { from: plan, else: free } }
  - { name: b, match: /b, per: ip, tier: { from: plan, else: free } }
`, "warning api_key.rpm")
	f(`
identify: { user: header X-User }
rules:
  - { name: a, per: user, limits: 5/minute }
`)
}

// Only what the configuration does not trust is told, and nothing where there is none.
func TestUntrustedSourceByConfiguration(t *testing.T) {
	const src = "version: 1\nidentify: { user: jwt.sub, customer: api_key, plan: api_key.plan }\n" +
		"rules:\n  - { name: a, per: [user, customer], limits: 5/minute, unless: { plan: pro } }\n"
	f := func(trust *lint.Trust, want string) {
		t.Helper()
		file, problems := rulefile.Parse("rules.yaml", []byte(src), rulefile.Options{})
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		got := ""
		for _, p := range lint.Run(file, lint.Options{Now: now, Trust: trust}) {
			if p.Check == "untrusted-source" {
				got += underlined(p) + "; "
			}
		}
		if got != want {
			t.Errorf("%+v: got %q, want %q", trust, got, want)
		}
	}
	f(nil, "")
	f(&lint.Trust{}, "jwt.sub; api_key; api_key.plan; ")
	f(&lint.Trust{JWT: true}, "api_key; api_key.plan; ")
	f(&lint.Trust{APIKeys: true}, "jwt.sub; ")
	f(&lint.Trust{JWT: true, APIKeys: true, Attributes: []string{"name", "plans"}}, "api_key.plan; ")
	f(&lint.Trust{JWT: true, APIKeys: true, Attributes: []string{"plan"}}, "")
}
