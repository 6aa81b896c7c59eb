package telemetry

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// desk is a gate with metrics.
type desk struct {
	*Metrics
	reg  *prometheus.Registry
	gate *tidegate.Gate
}

// around puts something around the registry that Metrics are registered with.
type around func(prometheus.Registerer) prometheus.Registerer

func newDesk(t testing.TB, src string, store tidegate.Store, by ...around) *desk {
	t.Helper()
	d := &desk{reg: prometheus.NewRegistry()}
	var reg prometheus.Registerer = d.reg
	for _, wrap := range by {
		reg = wrap(reg)
	}
	d.Metrics = New(reg, "memory")
	set, err := rules.Parse("rules.yaml", []byte("version: 1\n"+src), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d.SetRules(set.Rules(), set.Limits())
	d.gate = tidegate.NewGate(set, store).Observe(d.Observe)
	if m, ok := store.(*memory.Store); ok {
		d.WatchStore(func() StoreStats { return StoreStats(m.Stats()) },
			func(l *tidegate.Limit) StoreStats { return StoreStats(m.LimitStats(l)) })
	}
	return d
}

// who is asking, by the names of identify.
type who map[string]string

func (w who) Value(string) (string, bool) { return "", false }

func (w who) Identity(name string) (string, bool) {
	v, ok := w[name]
	return v, ok
}

func (d *desk) ask(t *testing.T, path string, as who) tidegate.Decision {
	return d.gate.Decide(t.Context(), &tidegate.Request{Method: "GET", Path: path, Values: as})
}

// page is what a scrape gets, without what is not ours and what depends on the
// machine.
func (d *desk) page(t testing.TB) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(d.reg).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	var b strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "tidegate_") && !strings.Contains(line, "tidegate_build_info") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// wants lines of the page.
func (d *desk) wants(t *testing.T, lines ...string) {
	t.Helper()
	page := d.page(t)
	for _, line := range lines {
		if !strings.Contains(page, line+"\n") {
			var near []string
			name, _, _ := strings.Cut(line, " ")
			for got := range strings.Lines(page) {
				if strings.HasPrefix(got, name) {
					near = append(near, strings.TrimSpace(got))
				}
			}
			t.Errorf("no line %q, but %q", line, near)
		}
	}
}

// nonZero are the lines of a metric that have counted something.
func (d *desk) nonZero(t *testing.T, metric string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(d.page(t)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, metric); ok && !strings.HasSuffix(line, " 0") {
			all = append(all, rest)
		}
	}
	return all
}
