package lint_test

import "testing"

func TestDenyByClientValue(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "deny-by-client-value", src, want...)
	}
	f(`
identify: { agent: client header User-Agent }
rules:
  - { name: a, when: { agent: "*curl*" }, deny: true }
`, "warning agent")
	f(`
identify: { session: cookie session }
lists: { banned: [x, y] }
rules:
  - { name: a, when: { session: in banned }, deny: true, mode: shadow }
`, "warning session")
	f(`
identify: { user: [jwt.sub, client header X-User] }
rules:
  - { name: a, when: { ip: 10.0.0.0/8, user: mallory }, deny: true }
`, "warning user")
	f(`
identify: { user: jwt.sub, name: basic.user, agent: client header User-Agent, action: query action }
rules:
  - { name: a, when: { user: mallory }, deny: true }
  - { name: g, when: { name: mallory }, deny: true }
  - { name: b, when: { ip: 203.0.113.0/24 }, deny: true }
  - { name: c, when: { agent: absent }, deny: true }
  - { name: d, when: { action: delete }, deny: true }
  - { name: e, per: ip, when: { agent: "*curl*" }, limits: 1/minute }
  - { name: f, when: { agent: "*curl*" }, deny: true, mode: disabled }
`)
}
