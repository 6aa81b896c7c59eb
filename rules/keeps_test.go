package rules

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"weak"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// A Set that is in force for weeks does not keep the rules as they were parsed, whatever they
// say: a large file would be in memory twice.
func TestSetKeepsNothingThatWasParsed(t *testing.T) {
	files, err := filepath.Glob("../docs/examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d example files: %v", len(files), err)
	}
	tried := 0
	for _, name := range files {
		if rulefile.IsTest(name) {
			continue
		}
		set, parsed := compiled(name)
		if set == nil {
			continue // an example of mistakes
		}
		runtime.GC()
		for i, w := range parsed {
			tried++
			if w.Value() != nil {
				t.Errorf("%s: what was parsed of %s is still there", name, set.rules[i].name)
			}
		}
		runtime.KeepAlive(set)
	}
	if tried < 50 {
		t.Errorf("only %d rules were tried", tried)
	}
}

// compiled returns the Set of a file, and what it was made of.
func compiled(name string) (set *Set, parsed []weak.Pointer[rulefile.Rule]) {
	f, problems := rulefile.Read(name, rulefile.Options{})
	if f == nil || problems.HasErrors() {
		return nil, nil
	}
	set, _ = compile(f, Config{})
	for _, r := range f.Rules {
		parsed = append(parsed, weak.Make(r))
	}
	return set, parsed
}

// Rules that say the same share it, and those that say something else do not.
func TestRulesShareWhatTheySayAlike(t *testing.T) {
	set := parse(t, `
version: 1
identify: { user: header X-User, role: header X-Role }
defaults: { on_store_failure: deny }
rules:
  - { name: a, match: /a, per: user, limits: 60/minute }
  - { name: b, match: /b, per: user, limits: 60/minute }
  - { name: per, match: /c, per: [user, ip], limits: 60/minute }
  - { name: missing, match: /c, per: user, missing: skip, limits: 60/minute }
  - { name: events, match: /d, per: user, limits: 61/minute }
  - { name: algorithm, match: /d, per: user, limits: { rate: 60/minute, algorithm: fixed_window } }
  - { name: several, match: /e, per: user, limits: [60/minute, 600/hour] }
  - { name: quota, match: /f, per: user, limits: 60/minute, quota: { amount: 100/day } }
  - { name: policy, match: /g, per: user, limits: 60/minute, on_store_failure: allow }
  - { name: denied, match: /h, deny: true }
`, Config{})
	a := set.rules[0]
	for _, r := range set.rules[1:] {
		got := fmt.Sprint(r.subject == a.subject, r.policies == a.policies, r.terms == a.terms)
		want := map[string]string{
			"b": "true true true", "per": "false true true", "missing": "false true true", "events": "true true false",
			"algorithm": "true true false", "several": "true true false", "quota": "true true false", "policy": "true false true", "denied": "false true false",
		}[r.name]
		if got != want {
			t.Errorf("%s shares subject, policies, terms: %s, want %s", r.name, got, want)
		}
		if (r.extra == noExtra) != (r.name != "denied") {
			t.Errorf("%s has something of its own: %+v", r.name, r.extra)
		}
	}
}

// What is shared is not written: an instead_of gives a rule something of its own.
func TestInsteadOfIsOfOneRule(t *testing.T) {
	set := parse(t, `
version: 1
rules:
  - { name: a, match: /a/, per: ip, limits: 60/minute }
  - { name: b, match: /b/, per: ip, limits: 60/minute }
  - { name: c, match: /a/c, per: ip, limits: 600/minute, instead_of: a }
`, Config{})
	var got []string
	for _, r := range set.rules {
		got = append(got, fmt.Sprint(r.name, r.replacers))
	}
	if got := strings.Join(got, " "); got != "a[2] b[] c[]" {
		t.Errorf("replaced by: %s", got)
	}
	if len(noExtra.replacers) > 0 {
		t.Error("all rules are replaced")
	}
}
