package ruletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules"
)

// files writes files into a folder and returns the name of the first.
func files(t *testing.T, nameText ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(nameText); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, nameText[i]), []byte(nameText[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, nameText[0])
}

func runFile(t *testing.T, name string) (*Report, error) {
	t.Helper()
	file, problems := Read(name)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return file.Run(t.Context(), rules.Config{})
}

func oneRule(name, limit string) string {
	return "version: 1\nrules: [{ name: " + name + ", match: /api/, per: ip, " + limit + " }]\n"
}

// A reload in a test is one of production: from every way to count to every other, whoever has
// used everything up stays refused, and a rule of another name starts anew.
func TestReloadKeepsWhatWasUsed(t *testing.T) {
	limits := []string{"quota: 4/day"}
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window", "sub_windows"} {
		way := "limits: { rate: 4/hour, algorithm: " + algorithm + " }"
		if algorithm == "leaky_bucket" {
			way += ", queue: { places: 1, max_wait: 1s }"
		}
		limits = append(limits, way)
	}
	for _, before := range limits {
		for _, after := range limits {
			f := func(renamed, want string) {
				t.Helper()
				use := 4
				if strings.Contains(before, "leaky") {
					use = 1 // one at a time
				}
				r, err := runFile(t, files(t, "test.yaml", fmt.Sprintf(`rules: old.yaml
cases:
  - name: used up before
    start: 2026-01-01T00:10:00Z
    steps:
      - { at: 0s, request: GET /api/x, times: %d, want: ok }
      - { at: 0s, request: GET /api/x, want: refused, rule: api }
      - { at: 1m, reload: new.yaml }
      - { at: 1m, request: GET /api/x, want: %s, rule: %s }
      - { at: 1m, request: GET /api/x, as: { ip: 198.51.100.7 }, want: ok }
`, use, want, renamed), "old.yaml", oneRule("api", before), "new.yaml", oneRule(renamed, after)))
				if err != nil || r.Failed() != 0 || r.Requests != use+3 {
					t.Errorf("from %s to %s: %+v, %v", before, after, r, err)
				}
			}
			f("api", "refused")
			f("other", "ok")
		}
	}
}

// The rules of a reloaded file are to be tested, too, and each case starts with the first file.
func TestReloadedRulesAreTouched(t *testing.T) {
	f := func(steps string, untouched ...string) {
		t.Helper()
		name := files(t, "test.yaml", "rules: old.yaml\ncases:\n  - name: a\n    steps:\n"+steps,
			"old.yaml", oneRule("api", "limits: 1/minute"),
			"new.yaml", "version: 1\nrules: [{ name: api, match: /api/, per: ip, limits: 2/minute }, { name: fresh, match: /new/, per: ip, limits: 1/minute }]\n")
		r, err := runFile(t, name)
		if err != nil || r.Failed() != 0 || !slices.Equal(r.Untouched, untouched) {
			t.Errorf("untouched %q, want %q; %+v, %v", r.Untouched, untouched, r, err)
		}
		if want := []string{filepath.Join(filepath.Dir(name), "new.yaml")}; strings.Contains(steps, "reload") != slices.Equal(r.Reloads, want) {
			t.Errorf("reloads %q", r.Reloads)
		}
	}
	f("      - { request: GET /api/x, want: ok }\n")
	f("      - { request: GET /api/x, want: ok }\n      - { reload: new.yaml }\n", "fresh")
	f("      - { reload: new.yaml }\n      - { request: GET /new/x, want: ok }\n", "api")
	f("      - { reload: new.yaml }\n      - { request: GET /new/x, want: ok }\n      - { request: GET /api/x, times: 2, want: ok }\n" +
		"  - name: b\n    steps:\n      - { request: GET /api/x, times: 2, want: [ok, refused] }\n      - { reload: new.yaml }\n      - { request: GET /api/x, want: ok }\n")
}

func TestReloadMistakes(t *testing.T) {
	f := func(step, message string) {
		t.Helper()
		_, problems := parse("test.yaml", []byte("rules: old.yaml\ncases:\n  - name: a\n    steps:\n      - "+step+"\n"))
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", step, err, message)
		}
	}
	f("{ reload: new.yaml, request: GET / }", "a step that reloads the rules has no `request`")
	f("{ reload: new.yaml, want: ok }", "a step that reloads the rules has no `want`")
	f("{ reload: new.yaml, times: 2 }", "a step that reloads the rules has no `times`")
	f(`{ reload: "" }`, "the reload names no rules")
	f("{ reload: [a.yaml, b.yaml] }", "this has to be a word or a sentence")
	f("{ at: 1m }", "the step has no request")

	for text, want := range map[string]string{"": "version", "version: 1\nrules: [{ name: api }]\n": "per"} {
		_, err := runFile(t, files(t, "test.yaml", "rules: old.yaml\ncases:\n  - name: a\n    steps:\n      - { reload: new.yaml }\n",
			"old.yaml", oneRule("api", "limits: 1/minute"), "new.yaml", text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "new.yaml") {
			t.Errorf("reload of %q: %v", text, err)
		}
	}
}
