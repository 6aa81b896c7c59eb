package lint_test

import "testing"

func TestExemptTooWide(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "exempt-too-wide", src, want...)
	}
	f(`
identify: { probe: client header X-Probe }
exempt: [{ when: { probe: "yes" } }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`, "error probe")
	f(`
identify: { debug: query debug }
exempt: [{ match: /, when: { debug: present } }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`, "error debug")
	f(`
identify: { user: jwt.sub }
exempt: [{ unless: { user: present } }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`, "error user")
	f(`
identify: { probe: client header X-Probe }
exempt: [{ when: { probe: 7f3a9c1e5b7d2468ace0 } }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`, "warning probe")
	f(`
identify: { probe: client header X-Probe }
exempt: [{ match: /metrics, when: { probe: "yes" } }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`, "warning probe")
	f(`
exempt: [{ match: / }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`, "error {")
	f(`
exempt: [{ match: /healthz }, { match: GET / }]
rules:
  - { name: a, per: ip, limits: 10/minute }
`)
	f(`
identify: { user: jwt.sub, probe: client header X-Probe }
exempt: [{ when: { user: monitor, probe: present } }, { when: { ip: 10.0.0.0/8 } }, { when: { method: OPTIONS } }]
rules:
  - { name: a, per: [ip], unless: { user: x }, limits: 10/minute }
`)
}
