package lint_test

import "testing"

func TestFailOpenGuard(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		finds(t, "fail-open-guard", src, want...)
	}
	f(`
rules:
  - { name: a, match: POST /login, per: ip, limits: 5/15m, count: { status: 401 }, on_store_failure: allow }
`, "warning count")
	f(`
defaults: { on_store_failure: allow }
rules:
  - { name: a, match: POST /login, per: ip, limits: 5/15m, block: 1h }
`, "warning 1h")
	f(`
defaults: { on_store_failure: allow }
rules:
  - { name: a, match: POST /login, per: ip, limits: 5/15m, block: 1h, on_store_failure: deny }
  - { name: b, per: ip, limits: 5/15m }
  - { name: c, match: POST /login, per: ip, limits: 5/15m, block: 1h, mode: disabled }
`)
	f(`
rules:
  - { name: a, match: POST /login, per: ip, limits: 5/15m, block: 1h }
`)
}
