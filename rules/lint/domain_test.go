package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/lint"
)

// Files and pages about domains load: what is shown as found and as repaired is not refused.
func TestDomainExamplesLoad(t *testing.T) {
	seen := 0
	for _, c := range lint.Checks {
		if !strings.HasPrefix(c.Name, "domain-") {
			continue
		}
		page, err := os.ReadFile("../../" + c.Docs)
		if err != nil {
			t.Fatal(err)
		}
		for _, src := range append(examples(t, string(page), "Found"), examples(t, string(page), "Repaired")...) {
			if _, err := rules.Parse(c.Docs, []byte(src), rules.Config{}); err != nil {
				t.Error(err)
			}
			seen++
		}
	}
	if seen < 20 {
		t.Errorf("only %d examples", seen)
	}
}

// A folder with both languages is looked at as a whole, each file by its own checks, and a
// domain can waive what is found in its file.
func TestFolderOfBothLanguages(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		if got := told(t, dir); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	put("a.yaml", "domain: a\ndescriptors: [{ key: user }]\n")
	want("warning domain-no-effect")
	put("b.yaml", "version: 1\nrules: [{ name: b, per: ip, limits: [5/hour, 5/day] }]\n")
	want("warning domain-no-effect", "warning day-below-hour")
	put("a.yaml", "domain: a\ntidegate: { waive: { domain-no-effect: \"filled in by the next release\" } }\ndescriptors: [{ key: user }]\n")
	problems := lint.File(dir, lint.Options{Now: now})
	if errs, warnings := problems.Count(); errs != 0 || warnings != 1 || problems.CountWaived() != 1 {
		t.Errorf("waived, and still\n%v", problems)
	}
	put("a.yaml", "domain: a\ntidegate: { waive: { domain-case: \"there is none\", domain-cases: \"misspelt\" } }\ndescriptors: [{ key: user, rate_limit: { unlimited: true } }]\n")
	want("warning unused-waiver", "error", "warning day-below-hour")
	// What does not load is reported alone, in either language.
	put("a.yaml", "domain: a\ndescriptors: [{ kee: user }]\n")
	want("error")
	// So is what only the numbers are wrong of.
	put("a.yaml", "domain: a\ndescriptors: [{ key: user, rate_limit: { unit: year, requests_per_unit: 1, tidegate: { algorithm: token_bucket } } }]\n")
	want("error")
	put("a.yaml", "domain: a\n")
	put("c.yaml", "domain: a\n")
	want("error")
	problems = lint.File(dir, lint.Options{Now: now, MergeDomains: true})
	if problems.HasErrors() {
		t.Errorf("domains may be merged, and still\n%v", problems)
	}
}
