package telemetry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/store/memory"
)

var update = flag.Bool("update", false, "write the golden files")

// busyDesk has seen a little of everything.
func busyDesk(t *testing.T, by ...around) *desk {
	d := newDesk(t, `
rules:
  - { name: api, match: /api/, per: ip, limits: 2/minute }
  - { name: banned, match: /admin/, deny: true }
`, memory.New(), by...)
	for range 3 {
		d.ask(t, "/api/", who{"ip": "192.0.2.1"})
	}
	d.ask(t, "/admin/", nil)
	d.match.Observe(2e-6)
	d.take.Observe(3e-7)
	d.Waited(1500 * time.Millisecond)
	d.UpstreamDone("http://127.0.0.1:9000", 200, 20*time.Millisecond, nil)
	d.UpstreamDone("http://127.0.0.1:9000", 503, 2*time.Second, nil)
	d.UpstreamDone("http://127.0.0.1:9001", 0, time.Minute, errors.New("no route to host"))
	d.Inflight(3)
	d.Inflight(-1)
	d.Retry()
	d.Ejected("http://127.0.0.1:9001", true)
	d.Ejected("http://127.0.0.1:9001", true)
	d.WatchQueue(func() int64 { return 7 })
	d.WatchShedding(func() []ShedStats {
		return []ShedStats{{Rule: "(shed)", Steps: 3, Most: 20, Ups: 5, Downs: 2, Requests: 41}}
	})
	d.WatchMeasures(func() map[string]int { return map[string]int{"ban": 3, NotHolding: 1} })
	d.WatchRules(func() RulesStatus {
		return RulesStatus{Reloads: 2, Failed: 1, LoadedAt: time.Unix(1_800_000_000, 250e6), Revision: "0123456789abcdef", Failing: true, FailingSince: time.Unix(1_800_000_002, 0), Layers: []LayerStats{
			{Name: "base.yaml", Revision: "0123", Since: time.Unix(1_800_000_003, 0), Refused: true},
			{Name: "redis://192.0.2.9:6379#rules", Revision: "42", Since: time.Unix(1_800_000_004, 0), Reached: time.Unix(1_800_000_005, 500e6), Down: true},
			{Name: "redis://192.0.2.9:6379#rules", Revision: "43"},
		}}
	})
	d.WatchDeferred(func() DeferredStats {
		return DeferredStats{Waiting: map[string]int64{"orders": 60}, Done: 61, Dead: 62, Lines: 63, Bytes: 64, Max: 65, Oldest: time.Unix(66, 0), Unwritten: 67, Open: true}
	})
	deferring := d.Deferring()
	deferring.Kept("api", "kept")
	deferring.Tried("orders", "done", 68*time.Millisecond)
	d.WatchQuotas(func() QuotaStats {
		return QuotaStats{Streams: 40, Buckets: 41, Counters: 42, Changed: 43, Extended: 44, Denied: 45, Refused: 46, Late: 47}
	})
	d.WatchPlane(func() PlaneStats {
		return PlaneStats{Connected: true, Failing: true, Updates: 30, Rejected: 31, Domains: 32}
	})
	d.WatchTrust(func() TrustStats {
		return TrustStats{
			Missing:  []MissingIdentity{{"customer", "api_key", 22}, {"user", "jwt.sub, client header X-User", 0}},
			Rejected: []Rejected{{"token", "expired", 23}, {"api_key", "unknown", 24}},
			APIKeys:  &APIKeysStats{Keys: 25, Reloads: 26, Failed: 27, Failing: true},
			JWKS:     &JWKSStats{Keys: 2, Fetched: 28, Failed: 29, FetchedAt: time.Unix(1_800_000_001, 0)},
		}
	})
	d.WatchCosts(func(rule string) int64 { return int64(len(rule)) })
	d.WatchSignals([]string{"cpu", "load"}, func(name string) (float64, bool) { return 0.25, name == "cpu" })
	offset := -0.125
	d.WatchShared(func() SharedStats {
		return SharedStats{
			State: "recovering", Instances: 3, ClockOffset: &offset, Denied: 1, Shared: 2, Calls: 4, InFlight: 5, Answered: 6, Rejected: 18, Unasked: map[string]int64{"login": 19}, Errors: 7, Timeouts: 8, Busy: 9,
			Probes: 10, Allowed: 11, Closed: 12, Admitted: 13, Refused: 14, Posted: 15, Lost: 16, Backlog: 17, LeasesLost: 20, Evicted: 21,
			Servers: map[string]ServerStats{"192.0.2.9:6379": {State: "degraded", Backlog: 22}}, Leases: 23, LeasedEvents: 24, EventualLag: 0.125,
			Regions: []RegionStats{{Region: "us", Lag: 0.25}},
			Usage:   []ServerUsage{{Server: "192.0.2.9:6379", CPU: 25.5, Memory: 26, MaxMemory: 27, Evicted: 28, Clients: 29, MaxClients: 30, Keys: 31}},
		}
	})
	d.WatchLogs(func() map[string]LogStats { return map[string]LogStats{"access": {Dropped: 18, Errors: 19}} })
	d.Calls()
	compared := d.NewCompared(func() (skipped, failed uint64) { return 20, 21 })
	compared.Told("d", "d.k", true)
	compared.Told("d", "d.k", false)
	return d
}

// memory of a store depends on its layout.
var storeBytes = regexp.MustCompile(`(?m)^(tidegate_\S*store_bytes\S*) [1-9]\d*$`)

func TestPage(t *testing.T) {
	got := storeBytes.ReplaceAllString(busyDesk(t).page(t), "$1 (some)")
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant (-update writes it)\n%s", got, want)
	}
}

// What promtool check metrics says.
func TestPageIsWellMade(t *testing.T) {
	families, err := busyDesk(t).reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "tidegate_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if len(families) < 40 {
		t.Errorf("%d metrics: those of the process and of the runtime should be there, too", len(families))
	}
}

func TestOddStatuses(t *testing.T) {
	d := newDesk(t, "rules: []\n", memory.New())
	for _, status := range []int{-100, 0, 99, 600, 99999} {
		d.UpstreamDone("u", status, time.Millisecond, nil)
	}
	d.UpstreamDone("u", 0, time.Millisecond, fmt.Errorf("round trip: %w", context.Canceled))
	d.wants(t, `tidegate_upstream_seconds_count{status="error",upstream="u"} 5`, `tidegate_upstream_seconds_count{status="canceled",upstream="u"} 1`)
}

func TestEjections(t *testing.T) {
	d := newDesk(t, "rules: []\n", memory.New())
	for _, on := range []bool{false, true, true, false, true, false, false} {
		d.Ejected("u", on)
	}
	d.wants(t, `tidegate_upstream_ejections_total{upstream="u"} 2`, `tidegate_upstream_ejected{upstream="u"} 0`)
}

// One decision in 256 is timed, and all are as they would be.
func TestTiming(t *testing.T) {
	d := newDesk(t, "rules: []\n", memory.New())
	limit := tidegate.PerMinute(1_000_000)
	store := queue.New(chain.Adapt(memory.New())).Time(d.Takes())
	gate := tidegate.NewGate(d.Matcher(one{limit}), store).Observe(d.Observe)
	const n = 256_000
	for range n {
		if !gate.Decide(t.Context(), &tidegate.Request{}).OK {
			t.Fatal("refused")
		}
	}
	families, err := d.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "tidegate_decision_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			if got := m.GetHistogram().GetSampleCount(); got < n/256*3/4 || got > n/256*5/4 {
				t.Errorf("%v: %d of %d were timed", m.GetLabel(), got, n)
			}
			if sum := m.GetHistogram().GetSampleSum(); sum <= 0 {
				t.Errorf("%v: took %v s", m.GetLabel(), sum)
			}
		}
	}
}

type one struct{ limit *tidegate.Limit }

func (m one) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, tidegate.Check{Key: "k", Limit: m.limit, Cost: 1})
}

// Every call of a shared store is shown.
func TestCallsAreTimed(t *testing.T) {
	d := newDesk(t, "rules: []\n", memory.New())
	told := d.Calls()
	for range 3 {
		told(time.Millisecond)
	}
	d.wants(t, "tidegate_store_call_seconds_count 3")
}

func TestDecades(t *testing.T) {
	got := decades(0.01, 10)
	want := []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
