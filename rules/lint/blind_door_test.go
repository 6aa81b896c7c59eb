package lint_test

import (
	"testing"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/lint"
)

func TestBlindDoor(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "blind-door", src, want...)
	}
	const one = "warning a" // for each door
	f(`
rules:
  - { name: a, per: ip, limits: 5/minute, count: { status: 401 } }
`, one, one, one, one)
	f(`
rules:
  - { name: a, per: ip, limits: 5/minute, for: [{ when: { ip: 10.0.0.0/8 }, queue: { places: 5, max_wait: 5s } }] }
`, one, one, one, one)
	// A slot can be given back, and a body sent, by all but forward-auth and rls.
	f(`
identify: { user: body.user }
rules:
  - { name: a, per: user, limits: 5/minute }
`, one, one)
	f(`
rules:
  - { name: a, per: ip, concurrency: { slots: 2, lease: 30s } }
`, one, one)
	// The certificate of a connection is never the client's.
	f(`
identify: { user: [tls.client_cn, header X-User] }
rules:
  - { name: a, per: user, limits: 5/minute }
  - { name: b, per: ip, limits: 5/minute }
`, one, one, one, one)
	f(`
identify: { user: body.user }
rules:
  - { name: a, per: ip, limits: 5/minute, over: { soft: 20% } }
  - { name: b, per: user, limits: 5/minute, mode: disabled }
`)
}

// Nobody who did not ask for a door is told of it.
func TestBlindDoorOnlyOnRequest(t *testing.T) {
	src := "version: 1\nrules: [{ name: a, per: ip, limits: 5/minute, count: { status: 401 } }]\n"
	f, problems := rulefile.Parse("rules.yaml", []byte(src), rulefile.Options{})
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	for _, p := range lint.Run(f, lint.Options{Now: now}) {
		if p.Check == "blind-door" {
			t.Errorf("%v", p)
		}
	}
}
