package telemetry

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// described is what a metric says about itself.
type described struct {
	name, help string
	labels     []string
}

// asText is how package prometheus prints a description, which it shows in no other way.
var asText = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// notes remembers the descriptions of all that is registered.
type notes struct {
	prometheus.Registerer
	all []described
}

func (n *notes) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		n.note(c)
	}
	n.Registerer.MustRegister(all...)
}

func (n *notes) Register(c prometheus.Collector) error {
	n.note(c)
	return n.Registerer.Register(c)
}

func (n *notes) note(c prometheus.Collector) {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		c.Describe(ch)
	}()
	for d := range ch {
		m := asText.FindStringSubmatch(d.String())
		if m == nil {
			panic("not understood: " + d.String())
		}
		if !strings.HasPrefix(m[1], "tidegate_") {
			continue
		}
		var labels []string
		for _, pair := range strings.Split(m[3], ",") {
			if name, _, ok := strings.Cut(pair, "="); ok {
				labels = append(labels, strings.TrimSpace(name))
			}
		}
		labels = append(labels, strings.FieldsFunc(m[4], func(r rune) bool { return r == ',' || r == ' ' })...)
		n.all = append(n.all, described{m[1], m[2], labels})
	}
}

// closed are the labels whose values are a few words of ours.
var closed = []string{"outcome", "state", "mode", "verdict", "step", "kind", "direction"}

const metricsHead = `# Metrics

Every metric of ` + "`/metrics`" + ` at the [admin listener](../gateway.md#see-what-it-does), which says with which to
begin. The tests of the project write this page from the code. A metric is shown once there is
something to show: those of a shared store, for example, only with Redis. Metrics of the Go runtime
(` + "`go_*`) and of the process (`process_*`)" + ` come beside these, under their usual names.

A histogram ` + "`NAME`" + ` consists of ` + "`NAME_bucket`, `NAME_sum` and `NAME_count`" + `.

| metric | type | labels | meaning |
|---|---|---|---|
`

// docs/reference/metrics.md has every metric that is registered.
func TestMetricsReferenceShowsWhatIsTrue(t *testing.T) {
	d := busyDesk(t, func(reg prometheus.Registerer) prometheus.Registerer { return &notes{Registerer: reg} })
	all := d.Metrics.reg.(*notes).all
	families, err := d.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds, values := make(map[string]string), make(map[string][]string)
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				key := f.GetName() + " " + l.GetName()
				if slices.Contains(closed, l.GetName()) && !slices.Contains(values[key], l.GetValue()) {
					values[key] = append(values[key], l.GetValue())
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b described) int { return cmp.Compare(a.name, b.name) })
	var page strings.Builder
	page.WriteString(metricsHead)
	for _, m := range all {
		kind := kinds[m.name]
		if kind == "" {
			t.Errorf("%s is registered, and busyDesk does not show it: let it", m.name)
		}
		delete(kinds, m.name)
		var labels []string
		for _, l := range m.labels {
			text := "`" + l + "`"
			if is := values[m.name+" "+l]; len(is) > 0 {
				text += ": " + strings.Join(is, ", ")
			}
			labels = append(labels, text)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m.name, kind, strings.Join(labels, "; "), strings.ReplaceAll(m.help, "|", "\\|"))
	}
	for name := range kinds {
		if strings.HasPrefix(name, "tidegate_") {
			t.Errorf("%s is shown and was not described", name)
		}
	}
	const file = "../../docs/reference/metrics.md"
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != page.String() {
		t.Error("docs/reference/metrics.md is not up to date: run make docs")
	}
}
