package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/rules/lint"
)

var (
	flowRule  = regexp.MustCompile(`(?m)^(\s*- \{)( name: )`)
	blockRule = regexp.MustCompile(`(?m)^(\s*)- (name: .*)$`)
)

// Whatever a check finds can be waived at the top of the file, and where it is found in
// a rule, also there; nothing else is silenced, and the rest stays as it was.
func TestEveryCheckCanBeWaived(t *testing.T) {
	for _, c := range lint.Checks {
		if c.Name == "unused-waiver" {
			continue // TestUnusedWaiver
		}
		t.Run(c.Name, func(t *testing.T) {
			name := filepath.Join("testdata", c.Name+".yaml")
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before := run(t, c.Name, name, string(raw))
			waiver := fmt.Sprintf("waive: { %s: \"we know: it's \u00fcber-fine\" }", c.Name)
			domain := strings.HasPrefix(c.Name, "domain-")
			if domain {
				waiver = "tidegate: { " + waiver + " }"
			}

			whole := run(t, c.Name, name, string(raw)+waiver+"\n")
			same(t, before, whole)
			for _, p := range whole {
				if p.Waived != "we know: it's \u00fcber-fine" {
					t.Errorf("not waived by the file: %v", p)
				}
			}
			if unused := run(t, "unused-waiver", name, string(raw)+waiver+"\n"); len(unused) > 0 && c.Name != "blind-door" && c.Name != "quota-door" {
				t.Errorf("the waiver silences something, and yet %v", unused)
			}
			if domain {
				return // has no rules
			}

			inRules := flowRule.ReplaceAllString(string(raw), "$1 "+strings.ReplaceAll(waiver, "$", "$$")+",$2")
			inRules = blockRule.ReplaceAllString(inRules, "$1- $2\n$1  "+strings.ReplaceAll(waiver, "$", "$$"))
			from := strings.Count(inRules[:strings.Index(inRules, "\nrules:")+1], "\n") + 1
			each := run(t, c.Name, name, inRules)
			same(t, before, each)
			for _, p := range each {
				if inRule := p.Line > from; inRule != (p.Waived != "") {
					t.Errorf("in a rule: %t, waived: %q: %v", inRule, p.Waived, p)
				}
			}
		})
	}
}

// same compares what was found, but for lines and waivers.
func same(t *testing.T, want, got diag.List) {
	t.Helper()
	numbers := regexp.MustCompile(`line \d+`)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || numbers.ReplaceAllString(want[i].Message, "") != numbers.ReplaceAllString(got[i].Message, "") || want[i].Severity != got[i].Severity {
			t.Fatalf("with waivers, this is found:\n%v\nand this without:\n%v", got, want)
		}
	}
}

// A misspelt check is told, also when the file does not load.
func TestUnknownWaiver(t *testing.T) {
	f := func(src string, want ...string) {
		t.Helper()
		var got []string
		for _, p := range lint.Text("rules.yaml", []byte("version: 1\n"+src), lint.Options{Now: now}) {
			got = append(got, fmt.Sprintf("%v %s: %s", p.Severity, underlined(p), p.Hint))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %q, want %q of\n%s", got, want, src)
		}
	}
	f("rules: [{ name: a, per: ip, limits: 5/minute, waive: { invented-kye: known } }]", "error invented-kye: did you mean `invented-key`?")
	f("waive: { frobnicate: known }\nrules: [{ name: a, per: ip, limits: 5/minute }]", "error frobnicate: `tidegate lint --checks` lists them")
	f("waive: { boundry-burst: known }\nrules: [{ name: a, per: ip, limit: 5/minute }]", "error boundry-burst: did you mean `boundary-burst`?", "error limit: did you mean `limits`?")
}

// Thousands of waivers are no more work than thousands of rules.
func TestManyWaivers(t *testing.T) {
	testdep.SkipUnderRace(t)
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	const rules = 3000
	for i := range rules {
		fmt.Fprintf(&b, "  - { name: r%d, match: /r%d/, per: ip, limits: { rate: 5/minute, algorithm: fixed_window }, waive: { boundary-burst: known, heavy-log: known } }\n", i, i)
	}
	found := lint.Text("rules.yaml", []byte(b.String()), lint.Options{Now: now})
	if errors, warnings := found.Count(); errors != 0 || warnings < rules || found.CountWaived() != rules {
		t.Errorf("%d errors, %d warnings, %d waived", errors, warnings, found.CountWaived())
	}
	if len(found) > 2*diag.MaxTold+2 {
		t.Errorf("%d problems are told", len(found))
	}
}
