package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate/rules/lint"
)

// told is what File says of a file, each problem as "severity check".
func told(t *testing.T, name string) []string {
	t.Helper()
	var all []string
	for _, p := range lint.File(name, lint.Options{Now: now}) {
		all = append(all, strings.TrimSpace(p.Severity.String()+" "+p.Check))
	}
	return all
}

func TestFile(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		name := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(name, []byte("version: 1\n"+src), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := told(t, name); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q, of\n%s", got, want, src)
		}
	}
	f("rules: [{ name: a, per: ip, limits: 5/minute }]")
	f("rules: [{ name: a, per: ip, limits: [5/hour, 5/day] }]", "warning day-below-hour")
	f("rules: [{ name: a, per: ip, missing: skip, limits: [5/hour, 5/day] }]", "warning", "warning day-below-hour")
	// What does not load is not looked at further.
	f("rules: [{ name: a, per: ip, limit: [5/hour, 5/day] }]", "error")
	// A branch that has ended is told once.
	f("identify: { role: jwt.role }\nrules: [{ name: a, per: ip, limits: 5/minute, for: [{ when: { role: x }, limits: 9/minute, until: 2026-01-01T00:00:00Z }] }]",
		"warning expired-until")
	if got := told(t, "no-such-file.yaml"); !slices.Equal(got, []string{"error"}) {
		t.Errorf("a file that is not there: got %q", got)
	}
}

// The examples of the documentation have no errors. The one that shows the whole
// language counts by a header, and is told so.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, name := range files {
		if strings.HasSuffix(name, "_test.yaml") || strings.HasSuffix(name, "/mistakes.yaml") {
			continue
		}
		found := lint.File(name, lint.Options{})
		if found.HasErrors() {
			t.Errorf("%v", found)
		}
		if filepath.Base(name) == "full.yaml" {
			seen = slices.Contains(told(t, name), "warning invented-key")
		}
	}
	if !seen {
		t.Error("full.yaml is not there, or nothing is said of the header that it counts by")
	}
}
