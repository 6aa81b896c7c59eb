package rulefile

import (
	"strings"
	"testing"
)

// One word or a list, and nothing at all, are said in every order that is meant.
func TestHeadersAsWritten(t *testing.T) {
	f := func(text string, dialects string, jitter float64) {
		t.Helper()
		src := "version: 1\n" + text + "\nrules:\n  - { name: a, per: ip, quota: 1/day }\n"
		file, problems := Parse("rules.yaml", []byte(src), Options{})
		if len(problems) > 0 {
			t.Fatalf("%s:\n%s", text, problems.Error())
		}
		if h := file.Headers; strings.Join(h.Dialects, " ") != dialects || h.RetryJitter != jitter {
			t.Errorf("%s: %v, %v", text, h.Dialects, h.RetryJitter)
		}
	}
	f("", "", 0)
	f("headers: { reset: delta }", "", 0)
	f("headers: { dialect: x }", "x", 0)
	f("headers: { dialect: none }", "none", 0)
	f("headers: { dialect: [none] }", "none", 0)
	f("headers: { dialect: [x] }", "x", 0)
	f("headers: { dialect: [x, draft11] }", "x draft11", 0)
	f("headers:\n  dialect:\n    - draft11\n    - draft6\n    - x\n", "draft11 draft6 x", 0)
	f("headers: { dialect: [draft11, draft6], reset: epoch }", "draft11 draft6", 0)
	f("headers: { retry_jitter: 10% }", "", 0.1)
	f("headers: { retry_jitter: 100% }", "", 1)
	f("headers: { retry_jitter: 0.01% }", "", 0.0001)
	f("headers: { retry_jitter: 0% }", "", -1) // that is not the same as nothing
}

// The window may be in any rule and any tier.
func TestRetryJitterOfNothing(t *testing.T) {
	f := func(rules string, warns bool) {
		t.Helper()
		_, problems := Parse("rules.yaml", []byte("version: 1\nheaders: { retry_jitter: 10% }\nrules:\n"+rules), Options{})
		if problems.HasErrors() || len(problems) > 0 != warns || warns && !strings.Contains(problems.Error(), "spreads nothing") {
			t.Errorf("%s\n%s", rules, problems.Error())
		}
	}
	f("  - { name: a, per: ip, limits: 100/minute }\n", true)
	f("  - { name: a, per: ip, concurrency: { slots: 3, lease: 1m } }\n", true)
	f("  - { name: a, deny: true, when: { ip: 192.0.2.1 } }\n", true)
	f("  - { name: a, per: ip, limits: { rate: 100/minute, algorithm: fixed_window } }\n", false)
	f("  - { name: a, per: ip, limits: [100/minute, { rate: 1000/hour, algorithm: fixed_window }] }\n", false)
	f("  - { name: a, per: ip, quota: 100/day }\n", false)
	f("  - { name: a, per: ip, limits: 100/minute }\n  - { name: b, per: ip, quota: 100/week }\n", false)
	f("  - { name: a, per: ip, limits: 100/minute, for: [{ when: { ip: 192.0.2.0/24 }, quota: 100/day }] }\n", false)
}
