package lint_test

import "testing"

func TestShadowedBranch(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "shadowed-branch", src, want...)
	}
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: present }, limits: 20/minute }
      - { when: { role: admin }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: [admin, premium] }, limits: 20/minute }
      - { when: { role: admin, user: bob }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: "p*" }, limits: 20/minute }
      - { when: { role: [premium, pro] }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: in staff }, limits: 20/minute }
      - { when: { role: admin }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: [admin, support, boss] }, limits: 20/minute }
      - { when: { role: in staff }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { ip: 10.0.0.0/8 }, limits: 20/minute }
      - { when: { ip: 10.1.0.0/16 }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { unless: { role: free }, limits: 20/minute }
      - { when: { role: admin }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { unless: { role: free, plan: x }, limits: 20/minute }
      - { unless: { role: free }, limits: unlimited }
`, "warning {")
	// Two before it, each for a part of what it holds for.
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: admin }, limits: 20/minute }
      - { when: { role: premium }, limits: 20/minute }
      - { when: { role: [premium, admin] }, limits: unlimited }
`, "warning {")
	// A branch that cannot hold at all.
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: admin }, unless: { role: [admin, x] }, limits: unlimited }
`, "warning {")
	f(`
identify: { role: jwt.role }
rules:
  - { name: a, per: ip, when: { role: free }, limits: 10/minute, for: [{ when: { role: admin }, limits: unlimited }] }
`, "warning {")
	// Reached.
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: admin }, limits: unlimited }
      - { when: { role: present }, limits: 20/minute }
`)
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: admin, user: bob }, limits: 20/minute }
      - { when: { role: admin }, limits: unlimited }
`)
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: "p*" }, limits: 20/minute }
      - { when: { role: [premium, admin] }, limits: unlimited }
`)
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: present }, unless: { plan: x }, limits: 20/minute }
      - { when: { role: admin }, limits: unlimited }
`)
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { unless: { role: free }, limits: 20/minute }
      - { unless: { role: free, plan: x }, limits: unlimited }
`)
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { ip: 10.1.0.0/16 }, limits: 20/minute }
      - { when: { ip: 10.0.0.0/8 }, limits: unlimited }
`)
	// Once its time has passed, the next one holds.
	f(`
identify: { role: jwt.role, user: jwt.sub, plan: jwt.plan }
lists: { staff: [admin, support] }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: present }, limits: 20/minute, until: 2027-01-01T00:00:00Z }
      - { when: { role: admin }, limits: unlimited }
`)
	// Of very many combinations each would have to be taken.
	many := `["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17"]`
	for _, c := range []struct{ first, want string }{{"present", "warning {"}, {"[\"1\"]", ""}} {
		want := []string{c.want}
		if c.want == "" {
			want = nil
		}
		f(`
identify: { role: jwt.role, user: jwt.sub }
rules:
  - name: a
    per: ip
    limits: 10/minute
    for:
      - { when: { role: `+c.first+` }, limits: 20/minute }
      - { when: { role: `+many+`, user: `+many+` }, limits: unlimited }
`, want...)
	}
	// Values are compared as the identity spells them.
	f(`
identify: { plan: lower jwt.plan }
rules:
  - { name: a, per: ip, when: { plan: [Pro, Gold] }, limits: 5/minute, for: [{ when: { plan: pro }, limits: 6/minute }] }
  - { name: b, per: ip, when: { host: Shop.Example }, limits: 5/minute, for: [{ when: { host: shop.example }, limits: 6/minute }] }
`)
	f(`
identify: { plan: lower jwt.plan }
rules:
  - { name: a, per: ip, limits: 5/minute, for: [{ when: { plan: Pro }, limits: 6/minute }, { when: { plan: PRO }, limits: 7/minute }] }
`, "warning {")
}
