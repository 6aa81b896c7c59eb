package lint_test

import "testing"

func TestInventedKey(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "invented-key", src, want...)
	}
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: device, limits: 5/week }
  - { name: b, per: everyone, limits: 100/second }
`, "warning device")
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: [ip, device], limits: 5/week }
  - { name: b, match: POST /a, per: route, limits: 100/second }
`, "warning per")
	f(`
identify: { caller: [jwt.sub, client header X-Api-Key] }
rules:
  - { name: a, match: POST /a, per: caller, limits: 5/week }
  - { name: b, per: everyone, limits: 100/second }
`, "warning caller")
	// Nobody can invent an API key that is looked up, as little as a token.
	f(`
identify: { customer: api_key, plan: api_key.plan }
rules:
  - { name: a, match: POST /a, per: [customer, plan], limits: 5/week, for: [{ when: { plan: pro }, limits: 50/week }] }
  - { name: b, per: everyone, limits: 100/second }
`)
	f(`
identify: { caller: [api_key, client header X-Api-Key] }
rules:
  - { name: a, match: POST /a, per: caller, limits: 5/week }
  - { name: b, per: everyone, limits: 100/second }
`, "warning caller")
	// A rule that counts the caller is beside it.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: device, limits: 5/week }
  - { name: b, per: ip, limits: 100/second }
`)
	f(`
identify: { device: client header X-Device, user: jwt.sub }
rules:
  - { name: a, match: POST /a, per: device, limits: 5/week }
  - { name: b, match: /a, per: user, limits: 100/second }
  - { name: c, per: everyone, limits: 100/second }
`)
	// Nothing is beside it: that is an error, and another check.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: device, limits: 5/week }
`)
	// It decides nothing.
	f(`
identify: { device: client header X-Device }
rules:
  - { name: a, match: POST /a, per: device, limits: 5/week, mode: shadow }
  - { name: b, per: everyone, limits: 100/second }
`)
}
