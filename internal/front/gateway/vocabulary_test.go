package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/node"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const vocabularyRules = `version: 1
identify: { who: query who }
rules:
  - { name: few, match: /few, per: who, limits: 1/hour }
  - { name: soft, match: /soft, per: who, limits: 1/hour, over: { soft: 100% } }
  - { name: closed, match: /closed, per: who, limits: 5/hour, on_store_failure: deny }
  - { name: open, match: /open, per: who, limits: 5/hour, on_store_failure: allow }
  - { name: local, match: /local, per: who, limits: 1/hour, on_store_failure: local }
  - { name: shadow, match: /shadow, per: who, limits: 1/hour, mode: shadow, on_store_failure: allow }
  - { name: banned, match: /banned, deny: true }
  - { name: would, match: /would, deny: true, mode: shadow }
  - { name: line, match: /line, per: who, limits: { rate: 5/second, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 1m } }
  - { name: long, match: /long, per: who, limits: { rate: 1/minute, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 1h } }
`

// flaky is a store that can be out of order.
type flaky struct {
	*memory.Store
	down atomic.Bool
}

func (f *flaky) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if f.down.Load() {
		return tidegate.Decision{}, errors.New("connection refused")
	}
	return f.Store.Take(ctx, checks, n)
}

// vocabulary is a gateway whose log and metrics can be compared.
type vocabulary struct {
	running
	log   logBuffer
	reg   *prometheus.Registry
	store *flaky
	lines int
}

func newVocabulary(t testing.TB, shared bool) *vocabulary {
	now := time.Now() // and stays: whether a turn has to be waited for must not depend on the machine
	v := &vocabulary{reg: prometheus.NewRegistry(), store: &flaky{Store: memory.Open(memory.Config{Now: func() time.Time { return now }})}}
	set, err := rules.Parse("rules.yaml", []byte(vocabularyRules), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	metrics := telemetry.New(v.reg, "redis")
	var store tidegate.Store = v.store
	if shared {
		g := node.New(chain.Adapt(store), node.Options{Deadline: 10e9, Failures: 1000})
		t.Cleanup(func() { _ = g.Close() })
		store = g
	}
	v.running = start(t, Options{
		Gate:  tidegate.NewGate(rules.NewLive(set), queue.New(chain.Adapt(store))).Observe(metrics.Observe),
		Store: "redis", AccessLog: v.log.access(),
		Upstreams: []*url.URL{serve(t, func(http.ResponseWriter, *http.Request) {})},
	}, nil)
	return v
}

// counts are the metrics that have counted something.
func (v *vocabulary) counts() map[string]bool {
	w := httptest.NewRecorder()
	telemetry.Handler(v.reg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	all := map[string]bool{}
	for line := range strings.Lines(w.Body.String()) {
		for _, name := range []string{"tidegate_requests_total", "tidegate_decided_total", "tidegate_decisions_total"} {
			if strings.HasPrefix(line, name) && !strings.HasSuffix(line, " 0\n") {
				all[strings.TrimSpace(line)] = true
			}
		}
	}
	return all
}

// told returns what a request, sent by do, added to the metrics, and its line.
func (v *vocabulary) told(t testing.TB, do func()) (added string, line map[string]any) {
	t.Helper()
	before := v.counts()
	do()
	v.lines++
	soon(t, "the line is there", func() bool { return len(v.log.lines()) == v.lines && v.log.lines()[v.lines-1] != "" })
	if err := json.Unmarshal([]byte(v.log.lines()[v.lines-1]), &line); err != nil {
		t.Fatal(err)
	}
	for is := range v.counts() {
		if !before[is] {
			added += is + "\n"
		}
	}
	return added, line
}

// Every outcome is called the same by the line of its request and by the metrics.
func TestLogAndMetricsUseTheSameWords(t *testing.T) {
	// A refusal is remembered for a second at most.
	testdep.Undisturbed(t, 250*time.Millisecond, func(t testing.TB) {
		seen := map[string]bool{}
		compare := func(v *vocabulary, want, by, rule string, do func()) {
			t.Helper()
			added, line := v.told(t, do)
			word, _ := line["decision"].(string)
			decider, _ := line["decided_by"].(string)
			named, _ := line["rule"].(string)
			if word != want || decider != by || named != rule {
				t.Errorf("the line says %q by %q of %q, want %q by %q of %q: %v", word, decider, named, want, by, rule, line)
			}
			if strings.Count(added, "requests_total") != 1 || !strings.Contains(added, fmt.Sprintf("requests_total{door=\"gateway\",outcome=%q}", want)) {
				t.Errorf("%s is counted as\n%s", want, added)
			}
			if by == "" && strings.Contains(added, "decided_total") || by != "" && !strings.Contains(added, fmt.Sprintf("decided_total{by=%q}", by)) {
				t.Errorf("%s by %q is counted as\n%s", want, by, added)
			}
			if rule != "" && !strings.Contains(added, fmt.Sprintf("decisions_total{outcome=%q,rule=%q}", want, rule)) {
				t.Errorf("%s of the rule %s is counted as\n%s", want, rule, added)
			}
			seen[word] = true
		}
		for _, shared := range []bool{false, true} {
			v := newVocabulary(t, shared)
			ask := func(path string) func() { return func() { get(t, v.url+path+"?who=me") } }
			compare(v, "ok", "", "", ask("/free"))
			compare(v, "ok", "redis", "few", ask("/few"))
			compare(v, "refused", "redis", "few", ask("/few"))
			if shared {
				compare(v, "refused", "remembered", "few", ask("/few"))
			}
			compare(v, "ok", "redis", "soft", ask("/soft"))
			compare(v, "soft", "redis", "soft", ask("/soft"))
			compare(v, "denied", "rule", "banned", ask("/banned"))
			compare(v, "ok", "", "", ask("/would"))
			compare(v, "ok", "redis", "line", ask("/line"))
			compare(v, "waited", "redis", "line", ask("/line"))
			compare(v, "ok", "redis", "long", ask("/long"))
			compare(v, "canceled", "", "long", func() {
				ctx, leave := context.WithCancel(t.Context())
				gone := make(chan bool)
				go func() {
					defer close(gone)
					if res, err := client.Do(newRequest(t, http.MethodGet, v.url+"/long?who=me", nil).WithContext(ctx)); err == nil {
						res.Body.Close()
					}
				}()
				soon(t, "it is queued", func() bool { return v.InFlight() == 1 })
				leave()
				<-gone
				soon(t, "it has left", func() bool { return v.InFlight() == 0 })
			})
			v.store.down.Store(true)
			compare(v, "error", "rule", "open", ask("/open"))
			compare(v, "error", "rule", "closed", ask("/closed"))
			if added, line := v.told(t, ask("/shadow")); line["decision"] != "ok" || line["decided_by"] != nil ||
				!strings.Contains(added, `requests_total{door="gateway",outcome="ok"}`) || !strings.Contains(added, `decisions_total{outcome="shadow_error",rule="shadow"}`) || strings.Contains(added, `"error"`) {
				t.Errorf("a rule in shadow mode that cannot be asked: %v, and\n%s", line, added)
			}
			if shared {
				compare(v, "ok", "local", "local", ask("/local"))
				compare(v, "refused", "local", "local", ask("/local"))
			}
		}
		for o := range outcome.Whole {
			if !seen[o.String()] {
				t.Errorf("%s was never the outcome", o)
			}
		}
	})
}
