package monitoring

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// promtool runs it, and returns what it printed and whether it was content.
func promtool(t testing.TB, stdin string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.Command(testdep.Need(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// promtool is content with the files, and the tests of the alerts pass.
func TestPromtoolChecksTheFiles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "rules", alertsFile},
		{"check", "config", configFile},
		{"test", "rules", alertsTests},
	} {
		if out, ok := promtool(t, "", args...); !ok {
			t.Errorf("promtool %s:\n%s", strings.Join(args, " "), out)
		}
	}
}

// Each alert has a test in which it is told, one in which it is not, and a page to read.
func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	tests := readFile(t, alertsTests)
	for _, a := range readAlerts(t) {
		_, part, found := strings.Cut(tests, "- name: "+a.name+"\n")
		part, _, _ = strings.Cut(part, "\n  - name: ")
		if !found || strings.Count(part, "alertname: "+a.name) != 2 || !strings.Contains(part, "exp_labels:") {
			t.Errorf("%s has no test in which it is not told and then is", a.name)
		}
		if a.severity != "page" && a.severity != "ticket" {
			t.Errorf("%s has the severity %q", a.name, a.severity)
		}
		if !slices.Contains(sections(t), a.runbook) {
			t.Errorf("%s sends people to docs/operating.md#%s, which is not there", a.name, a.runbook)
		}
	}
}

// The runbook has the name of every alert, so that whoever was woken finds it there. Where several
// stand together, a name may be cut: `…Slow`.
func TestRunbookNamesEveryAlert(t *testing.T) {
	page := readFile(t, runbook)
	for _, a := range readAlerts(t) {
		named := strings.Contains(page, "`"+a.name+"`")
		for i, r := range a.name {
			named = named || unicode.IsUpper(r) && strings.Contains(page, "`…"+a.name[i:]+"`")
		}
		if !named {
			t.Errorf("docs/operating.md does not name %s", a.name)
		}
	}
}

// sections are the anchors of the runbook.
func sections(t testing.TB) (all []string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, runbook)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			title = regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return all
}

// The tests of the alerts notice alerts that no longer do what they say: that are never told, and
// that always are.
func TestTestsOfAlertsNoticeBrokenOnes(t *testing.T) {
	t.Parallel()
	all := readAlerts(t)
	for _, broken := range []string{"vector(1) < 0", "vector(1)"} {
		dir, text := t.TempDir(), readFile(t, alertsFile)
		copyOf(t, dir)
		for _, a := range all {
			text = strings.Replace(text, a.expr, broken, 1)
		}
		writeFile(t, filepath.Join(dir, "alerts.yaml"), text)
		out, ok := promtool(t, "", "test", "rules", filepath.Join(dir, "alerts_test.yaml"))
		for _, a := range all {
			if ok || !strings.Contains(out, "alertname: "+a.name+", ") {
				t.Errorf("%s is %s, and its tests pass", a.name, broken)
			}
		}
	}
}

// Every query of the dashboard is one that Prometheus understands.
func TestPromtoolChecksTheQueriesOfTheDashboard(t *testing.T) {
	d := readDashboard(t)
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, q := range d.queries() {
		rules.WriteString("  - record: it\n    expr: '" + strings.ReplaceAll(q, "'", "''") + "'\n")
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	writeFile(t, file, rules.String())
	if out, ok := promtool(t, "", "check", "rules", "--lint=none", file); !ok {
		t.Error(out)
	}
}
