package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules/lint"
)

// Each check is complete: a file, a test, testdata with what is found in it, and
// a page. TestGolden and TestPages read the latter.
func TestCheckIsComplete(t *testing.T) {
	for _, c := range lint.Checks {
		file := strings.ReplaceAll(c.Name, "-", "_")
		for _, name := range []string{file + ".go", file + "_test.go", "testdata/" + c.Name + ".yaml", "testdata/" + c.Name + ".txt", "../../" + c.Docs} {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		if c.Summary == "" || strings.HasSuffix(c.Summary, ".") {
			t.Errorf("%s: the summary %q is no phrase", c.Name, c.Summary)
		}
	}
}

// Nothing is left behind of a check that is gone.
func TestNoOrphans(t *testing.T) {
	known := make(map[string]bool)
	for _, c := range lint.Checks {
		known[c.Name] = true
	}
	for _, pattern := range []string{"testdata/*", "../../docs/lint/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
			if !known[name] && name != "README" {
				t.Errorf("%s belongs to no check", f)
			}
		}
	}
}

// The examples of a page are true: what stands under "Found" is found, with the
// severity that the page tells, and what stands under "Repaired" has no problem
// of any kind.
func TestPages(t *testing.T) {
	for _, c := range lint.Checks {
		t.Run(c.Name, func(t *testing.T) {
			raw, err := os.ReadFile("../../" + c.Docs)
			if err != nil {
				t.Fatal(err)
			}
			page := string(raw)
			if !strings.HasPrefix(page, "# "+c.Name+"\n\nSeverity: ") {
				t.Errorf("%s does not begin with the name of the check and its severity", c.Docs)
			}
			_, severity, _ := strings.Cut(page, "Severity: ")
			severity, _, _ = strings.Cut(severity, "\n")
			for _, heading := range []string{"Why it matters", "Found", "Repaired", "When to ignore it"} {
				if !strings.Contains(page, "\n## "+heading+"\n") {
					t.Errorf("%s has no %q", c.Docs, heading)
				}
			}
			for _, src := range examples(t, page, "Found") {
				found := run(t, c.Name, c.Docs, src)
				if len(found) == 0 {
					t.Errorf("nothing is found in\n%s", src)
				}
				for _, p := range found {
					if !strings.Contains(severity, p.Severity.String()) {
						t.Errorf("the page says %q, and this is a problem of severity %v:\n%v", severity, p.Severity, found)
					}
				}
			}
			for _, src := range examples(t, page, "Repaired") {
				f, problems := rulefile.Parse(c.Docs, []byte(src), rulefile.Options{Now: longAgo})
				if f != nil {
					problems.Add(lint.Run(f, lint.Options{Now: now})...)
				}
				if len(problems) > 0 {
					t.Errorf("repaired, and still\n%v\nin\n%s", problems, src)
				}
			}
		})
	}
}

// examples are the YAML blocks under a heading.
func examples(t *testing.T, page, heading string) []string {
	t.Helper()
	_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, b := range strings.Split(section, "```yaml\n")[1:] {
		b, _, closed := strings.Cut(b, "```\n")
		if !closed {
			t.Fatalf("a block under %q has no end", heading)
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		t.Fatalf("there is no example under %q", heading)
	}
	return blocks
}

// docs/lint/README.md lists the checks as they are.
func TestReadmeListsTheChecks(t *testing.T) {
	raw, err := os.ReadFile("../../docs/lint/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "| [") {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	for i, c := range lint.Checks {
		want := fmt.Sprintf("| [%s](%s.md) | %s |", c.Name, c.Name, c.Summary)
		if i >= len(got) || got[i] != want {
			t.Fatalf("row %d of docs/lint/README.md should be\n%s", i+1, want)
		}
	}
	if len(got) > len(lint.Checks) {
		t.Errorf("docs/lint/README.md lists %d checks, and there are %d", len(got), len(lint.Checks))
	}
}
