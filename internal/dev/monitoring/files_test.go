package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	alertsFile    = "../../../deploy/prometheus/alerts.yaml"
	alertsTests   = "../../../deploy/prometheus/alerts_test.yaml"
	configFile    = "../../../deploy/prometheus/prometheus.yaml"
	dashboardFile = "../../../deploy/grafana/tidegate.json"
	metricsPage   = "../../../docs/reference/metrics.md"
	runbook       = "../../../docs/operating.md"
)

func readFile(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// panel is a panel of the dashboard.
type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

type dashboard struct {
	UID, Title string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Annotations struct{ List []struct{ Expr string } }
}

func readDashboard(t testing.TB) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	if len(d.Panels) < 30 {
		t.Fatalf("the dashboard has %d panels", len(d.Panels))
	}
	return d
}

// queries are all that the dashboard asks Prometheus for, with values in place of its variables.
func (d *dashboard) queries() (all []string) {
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, plain(target.Expr))
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, plain(a.Expr))
	}
	return all
}

// plain is a query as Grafana asks it, for all instances and rules.
func plain(query string) string {
	return strings.NewReplacer("$__rate_interval", "30s", "$job", "tidegate", "$instance", ".*", "$rule", ".*").Replace(query)
}

// alert is an alert of the file, as far as these tests look at it.
type alert struct{ name, expr, runbook, severity string }

var (
	alertName = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	severity  = regexp.MustCompile(`(?m)^ +labels: \{ severity: (\w+) \}$`)
	linked    = regexp.MustCompile(`(?m)^ +runbook: docs/operating\.md#(\S+)$`)
	summary   = regexp.MustCompile(`(?m)^ +summary: "(.+)"$`)
	whole     = regexp.MustCompile(`(?s) +expr: (.+?)\n +(?:for|labels):`)
)

func readAlerts(t testing.TB) (all []alert) {
	t.Helper()
	text := readFile(t, alertsFile)
	at := alertName.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		part := text[m[0]:end]
		a := alert{name: text[m[2]:m[3]]}
		for _, f := range []struct {
			by *regexp.Regexp
			to *string
		}{{whole, &a.expr}, {severity, &a.severity}, {linked, &a.runbook}, {summary, new(string)}} {
			found := f.by.FindStringSubmatch(part)
			if found == nil {
				t.Fatalf("%s has no %s", a.name, f.by)
			}
			*f.to = found[1]
		}
		all = append(all, a)
	}
	if len(all) < 20 || len(all) != strings.Count(text, "- alert:") {
		t.Fatalf("%d alerts were read", len(all))
	}
	return all
}

// copyOf copies the files of Prometheus to a folder.
func copyOf(t testing.TB, dir string) {
	t.Helper()
	for _, file := range []string{alertsFile, alertsTests, configFile} {
		writeFile(t, filepath.Join(dir, filepath.Base(file)), readFile(t, file))
	}
}
