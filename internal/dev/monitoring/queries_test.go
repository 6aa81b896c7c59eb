package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// known is a metric of the reference page.
type known struct {
	kind   string
	labels []string
	values map[string][]string // of labels whose values are few
}

var inMarks = regexp.MustCompile("`([^`]+)`")

// metrics are those of docs/reference/metrics.md, which a test of internal/telemetry writes.
func metrics(t testing.TB) map[string]known {
	t.Helper()
	all := make(map[string]known)
	for line := range strings.Lines(readFile(t, metricsPage)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " `tidegate_") {
			continue
		}
		m := known{kind: strings.TrimSpace(cells[2]), values: make(map[string][]string)}
		for _, label := range strings.Split(cells[3], ";") {
			if found := inMarks.FindStringSubmatch(label); found != nil {
				m.labels = append(m.labels, found[1])
				if _, values, ok := strings.Cut(label, ":"); ok {
					m.values[found[1]] = strings.Split(strings.TrimSpace(strings.ReplaceAll(values, ", ", ",")), ",")
				}
			}
		}
		all[strings.Trim(cells[1], " `")] = m
	}
	if len(all) < 60 {
		t.Fatalf("%d metrics were read", len(all))
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b((?:tidegate|process|go)_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// fromPrometheus are labels that each series gets when it is scraped, and that of buckets.
var fromPrometheus = []string{"job", "instance", "le"}

// wrongIn says what a query asks for that there is not.
func wrongIn(query string, all map[string]known) (wrong []string) {
	var labels []string
	for _, found := range selector.FindAllStringSubmatch(query, -1) {
		name := found[1]
		if !strings.HasPrefix(name, "tidegate_") {
			continue
		}
		m, ok := all[name]
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, part); cut && !ok {
				m, ok = all[base]
				ok = ok && m.kind == "histogram"
			}
		}
		if !ok {
			wrong = append(wrong, "there is no metric "+name)
			continue
		}
		labels = append(labels, m.labels...)
		for _, match := range matcher.FindAllStringSubmatch(found[2], -1) {
			label, value := match[1], match[3]
			if !slices.Contains(m.labels, label) && !slices.Contains(fromPrometheus, label) {
				wrong = append(wrong, name+" has no label "+label)
			}
			for _, word := range strings.Split(value, "|") {
				if known := m.values[label]; known != nil && !slices.Contains(known, word) {
					wrong = append(wrong, name+" has no "+label+" "+word)
				}
			}
		}
	}
	for _, found := range grouping.FindAllStringSubmatch(query, -1) {
		for _, label := range strings.Split(found[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) && !slices.Contains(fromPrometheus, label) {
				wrong = append(wrong, "nothing has the label "+label)
			}
		}
	}
	return wrong
}

// Alerts and dashboard ask for metrics, labels and outcomes that there are.
func TestWhatIsAskedForExists(t *testing.T) {
	all := metrics(t)
	d := readDashboard(t)
	queries := d.queries()
	for _, a := range readAlerts(t) {
		queries = append(queries, a.expr)
	}
	for _, v := range d.Templating.List {
		queries = append(queries, string(v.Query))
	}
	for _, q := range queries {
		for _, wrong := range wrongIn(q, all) {
			t.Errorf("%s: %s", q, wrong)
		}
	}
}

// A metric, label or outcome that there is not is noticed.
func TestWhatDoesNotExistIsNoticed(t *testing.T) {
	all := metrics(t)
	f := func(query string, wrong int) {
		t.Helper()
		if got := wrongIn(query, all); len(got) != wrong {
			t.Errorf("%s: %q", query, got)
		}
	}
	f(`sum by (rule) (rate(tidegate_decisions_total{outcome=~"ok|refused", job="tidegate"}[5m]))`, 0)
	f(`rate(tidegate_decision_seconds_bucket{step="take"}[5m])`, 0)
	f(`rate(tidegate_decisions[5m])`, 1)
	f(`rate(tidegate_decisions_total_count[5m])`, 1)
	f(`tidegate_decisions_total{outcome=~"ok|rejected"}`, 1)
	f(`tidegate_decisions_total{key="42"}`, 1)
	f(`sum by (rule, user) (tidegate_decisions_total)`, 1)
}

// Panels have a title, a sentence, an id of their own and a place of their own.
func TestDashboardIsWellMade(t *testing.T) {
	ids, titles := make(map[int]bool), make(map[string]bool)
	taken := make(map[[2]int]string)
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && (titles[p.Title] || p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d, %q: its id or title is not its own, or something is missing", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beside the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
