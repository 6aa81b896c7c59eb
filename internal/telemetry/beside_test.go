package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// signal is a value of every signal.
type signal float64

func (s *signal) Signal(string) (float64, bool) { return float64(*s), true }

// What an elastic limit gives is told apart from what a soft one gives.
func TestElasticIsToldBesideSoft(t *testing.T) {
	cpu := signal(0.2)
	set, err := rules.Parse("rules.yaml", []byte(`
version: 1
rules:
  - { name: feed, match: /feed, per: everyone, limits: 1/hour, over: { elastic: { while: cpu < 80%, up_to: 3x } } }
  - { name: search, match: /search, per: everyone, limits: 1/hour, over: { soft: 100% } }
`), rules.Config{Signals: &cpu})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, "rules: []\n", memory.New())
	d.gate = tidegate.NewGate(set, memory.New()).Observe(d.Observe)
	for range 2 {
		d.ask(t, "/feed", nil)
		d.ask(t, "/search", nil)
	}
	cpu = 0.9
	d.ask(t, "/feed", nil)
	want := `{outcome="elastic",rule="feed"} 1; {outcome="ok",rule="feed"} 1; {outcome="ok",rule="search"} 1; ` +
		`{outcome="refused",rule="feed"} 1; {outcome="soft",rule="feed"} 1; {outcome="soft",rule="search"} 1`
	if got := strings.Join(d.nonZero(t, "tidegate_decisions_total"), "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A request that waited is told of the rule that has the queue, whatever became of it.
func TestQueuedIsToldOfTheRuleWithTheQueue(t *testing.T) {
	for _, algorithm := range []string{"sliding_log", "fixed_window", "token_bucket", "leaky_bucket"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, "rules: []\n", memory.New())
			set, err := rules.Parse("rules.yaml", []byte(`
version: 1
rules:
  - { name: jobs, per: everyone, limits: { rate: 1/second, algorithm: `+algorithm+` }, queue: { places: 1, max_wait: 2s } }
  - { name: site, per: everyone, limits: 1000/second }
`), rules.Config{})
			if err != nil {
				t.Fatal(err)
			}
			gate := tidegate.NewGate(set, queue.New(chain.Adapt(memory.New()))).Observe(d.Observe)
			for range 2 {
				go gate.Decide(t.Context(), &tidegate.Request{Method: "GET", Path: "/", Values: who{}})
				synctest.Wait()
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			page := d.page(t)
			for _, want := range []string{`tidegate_decisions_total{outcome="queued",rule="jobs"} 1`, `tidegate_decisions_total{outcome="waited",rule="jobs"} 1`} {
				if !strings.Contains(page, want+"\n") {
					t.Errorf("%s: no %s in %q", algorithm, want, d.nonZero(t, "tidegate_decisions_total"))
				}
			}
			if strings.Contains(page, `{outcome="queued",rule="site"} 1`) {
				t.Errorf("%s: the rule without a queue has it, too", algorithm)
			}
		})
	}
}

// What a rule does without its store is told by rule, for every mode and verdict.
func TestFailuresAreToldByMode(t *testing.T) {
	rule := func(name string, mode tidegate.FailMode) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: name, Events: 5, Period: time.Minute, Terms: &tidegate.Terms{Rule: name, Handling: tidegate.Handling{OnStoreFailure: mode}}})
	}
	local, open, closed := rule("local", tidegate.FailLocal), rule("open", tidegate.FailOpen), rule("closed", tidegate.FailClosed)
	away, here := errors.New("away"), tidegate.Receipt{Origin: tidegate.OriginLocal}
	f := func(d tidegate.Decision, want string, of ...*tidegate.Limit) {
		t.Helper()
		desk := newDesk(t, "rules: []\n", memory.New())
		var checks []tidegate.Check
		for _, l := range of {
			checks = append(checks, tidegate.Check{Key: "k", Limit: l, Cost: 1})
		}
		desk.Observe(nil, checks, d)
		if got := strings.Join(desk.nonZero(t, "tidegate_decisions_total"), "; "); got != want {
			t.Errorf("%+v\ngot  %s\nwant %s", d, got, want)
		}
	}
	f(tidegate.Decision{OK: true, Limit: open, Err: away}, `{outcome="error",rule="open"} 1; {outcome="failed_open",rule="open"} 1`, open)
	f(tidegate.Decision{Limit: closed, Err: away}, `{outcome="error",rule="closed"} 1; {outcome="failed_closed",rule="closed"} 1`, local, closed)
	f(tidegate.Decision{OK: true, Limit: local, Receipt: here}, `{outcome="failed_local",rule="local"} 1; {outcome="ok",rule="local"} 1`, local)
	f(tidegate.Decision{Limit: local, Receipt: here}, `{outcome="failed_local",rule="local"} 1; {outcome="refused",rule="local"} 1`, local, open)
	// One goes on locally, and beside it the other admits whatever comes.
	f(tidegate.Decision{OK: true, Limit: local, Receipt: here},
		`{outcome="failed_local",rule="local"} 1; {outcome="failed_open",rule="open"} 1; {outcome="ok",rule="local"} 1; {outcome="ok",rule="open"} 1`, local, open)
	f(tidegate.Decision{Limit: open, Err: fmt.Errorf("in line: %w", context.Canceled)}, `{outcome="canceled",rule="open"} 1`, open)
}

// A refused request that was kept for later is told as deferred, one that found no place is not.
func TestDeferredIsToldBesideRefused(t *testing.T) {
	for how, want := range map[string]string{
		"kept": `{outcome="deferred",rule="orders"} 1; {outcome="refused",rule="orders"} 1`,
		"full": `{outcome="refused",rule="orders"} 1`, "body": `{outcome="refused",rule="orders"} 1`, "limited": `{outcome="refused",rule="orders"} 1`,
		"failed": `{outcome="refused",rule="orders"} 1`, "draining": `{outcome="refused",rule="orders"} 1`,
	} {
		d := newDesk(t, "rules: []\n", memory.New())
		l := limitOfRule("orders")
		d.Observe(nil, []tidegate.Check{{Key: "42", Limit: l}}, tidegate.Decision{Limit: l})
		d.Deferring().Kept("orders", how)
		if got := strings.Join(d.nonZero(t, "tidegate_decisions_total"), "; "); got != want {
			t.Errorf("%s: got  %s\nwant %s", how, got, want)
		}
	}
}

// Of a cluster of any size, as many servers are shown as for their states; the fullest first.
func TestServerUsageIsBounded(t *testing.T) {
	for _, n := range []int{0, 1, maxServers, maxServers + 1, 1000} {
		d := newDesk(t, "rules: []\n", memory.New())
		d.WatchShared(func() (s SharedStats) {
			for i := range n {
				s.Usage = append(s.Usage, ServerUsage{Server: fmt.Sprint("server-", i), Memory: int64(i), MaxMemory: 2000})
			}
			return s
		})
		shown := strings.Count(d.page(t), "tidegate_store_server_memory_bytes{")
		if shown != min(n, maxServers) {
			t.Errorf("%d of %d servers are shown", shown, n)
		}
		if n > 0 && !strings.Contains(d.page(t), fmt.Sprintf(`tidegate_store_server_memory_bytes{server="server-%d"}`, n-1)) {
			t.Errorf("of %d servers the fullest is not shown", n)
		}
	}
	d := newDesk(t, "rules: []\n", memory.New())
	d.WatchShared(func() SharedStats { return SharedStats{Usage: []ServerUsage{{Server: "Redis"}}} })
	if page := d.page(t); strings.Contains(page, "_max") {
		t.Errorf("bounds that there are not are shown:\n%s", page)
	}
}

// New takes any registerer, and registers nothing anywhere else.
func TestMetricsAreRegisteredWithTheGivenRegistryAlone(t *testing.T) {
	before, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	newDesk(t, "rules: []\n", memory.New(), func(reg prometheus.Registerer) prometheus.Registerer {
		return prometheus.WrapRegistererWith(prometheus.Labels{"cell": "eu"}, reg)
	}).wants(t, `tidegate_requests_total{cell="eu",door="gateway",outcome="ok"} 0`)
	after, err := prometheus.DefaultGatherer.Gather()
	if err != nil || len(after) != len(before) {
		t.Errorf("%d metrics in the default registry, %d before, %v", len(after), len(before), err)
	}
}
