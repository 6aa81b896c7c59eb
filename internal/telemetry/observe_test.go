package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const allKinds = `
identify: { user: header X-User, key: client header X-Key }
rules:
  - { name: api, match: /api/, per: user, limits: [2/minute, 100/hour] }
  - { name: site, match: /, per: everyone, limits: 1000000/minute }
  - { name: search, match: /search, per: user, limits: 1/minute, over: { soft: 100% } }
  - { name: banned, match: /admin/, deny: true }
  - { name: keyed, match: /keyed, per: key, missing: refuse, limits: 5/minute }
  - { name: idea, match: /idea, per: user, limits: 1/minute, mode: shadow }
  - { name: try, match: /try, per: user, limits: 100/minute, candidate: 1/minute }
  - { name: deny-idea, match: /idea, deny: true, mode: shadow }
  - { name: closed, match: /closed, per: user, limits: 5/minute, on_store_failure: deny }
  - { name: never-asked, match: /never, per: user, limits: 5/minute }
`

func TestOutcomes(t *testing.T) {
	f := func(path string, times int, rules, requests string) {
		t.Helper()
		d := newDesk(t, allKinds, memory.New())
		for range times {
			d.ask(t, path, who{"user": "42"})
		}
		if got := strings.Join(d.nonZero(t, "tidegate_decisions_total"), "; "); got != rules {
			t.Errorf("%s: rules have\n%s, want\n%s", path, got, rules)
		}
		if got := strings.Join(d.nonZero(t, "tidegate_requests_total"), "; "); got != requests {
			t.Errorf("%s: requests have\n%s, want\n%s", path, got, requests)
		}
	}
	f("/other", 1, `{outcome="ok",rule="site"} 1`, `{door="gateway",outcome="ok"} 1`)
	f("/api/x", 5, `{outcome="ok",rule="api"} 2; {outcome="ok",rule="site"} 2; {outcome="refused",rule="api"} 3`,
		`{door="gateway",outcome="ok"} 2; {door="gateway",outcome="refused"} 3`)
	f("/search", 3, `{outcome="ok",rule="search"} 1; {outcome="ok",rule="site"} 2; {outcome="refused",rule="search"} 1; {outcome="soft",rule="search"} 1`,
		`{door="gateway",outcome="ok"} 1; {door="gateway",outcome="refused"} 1; {door="gateway",outcome="soft"} 1`)
	f("/admin/", 2, `{outcome="denied",rule="banned"} 2`, `{door="gateway",outcome="denied"} 2`)
	f("/keyed", 1, `{outcome="denied",rule="keyed"} 1`, `{door="gateway",outcome="denied"} 1`)
	f("/idea", 3, `{outcome="ok",rule="idea"} 1; {outcome="ok",rule="site"} 3; {outcome="shadow_refused",rule="deny-idea"} 3; {outcome="shadow_refused",rule="idea"} 2`,
		`{door="gateway",outcome="ok"} 3`)
	f("/try", 3, `{outcome="candidate",rule="try"} 2; {outcome="ok",rule="site"} 3; {outcome="ok",rule="try"} 3; {outcome="shadow_refused",rule="try"} 2`, `{door="gateway",outcome="ok"} 3`)
}

// A request that is held to the counters of rules before, too, counts once.
func TestPredecessorsAreNotCounted(t *testing.T) {
	parse := func(limits string) *rules.Set {
		set, err := rules.Parse("rules.yaml", []byte("version: 1\nrules:\n  - { name: api, per: everyone, limits: "+limits+" }\n"+
			"  - { name: idea, per: everyone, mode: shadow, limits: "+limits+" }\n"), rules.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	live := rules.NewLive(parse("{ rate: 2/hour, algorithm: token_bucket }"))
	live.Swap(parse("2/hour"))
	d := newDesk(t, allKinds, memory.New())
	d.SetRules(live.Set().Rules(), live.Set().Limits())
	gate := tidegate.NewGate(live, memory.New()).Observe(d.Observe)
	for range 3 {
		gate.Decide(t.Context(), &tidegate.Request{Method: "GET", Path: "/", Values: who{}})
	}
	want := `{outcome="ok",rule="api"} 2; {outcome="ok",rule="idea"} 2; {outcome="refused",rule="api"} 1`
	if got := strings.Join(d.nonZero(t, "tidegate_decisions_total"), "; "); got != want {
		t.Errorf("rules have\n%s, want\n%s", got, want)
	}
}

// broken is a store that cannot answer.
type broken struct{ err error }

func (b broken) Take(context.Context, []tidegate.Check, int) (tidegate.Decision, error) {
	return tidegate.Decision{}, b.err
}
func (b broken) Adjust(context.Context, tidegate.Receipt, []tidegate.Check) error { return b.err }

func TestOutcomesWithoutStore(t *testing.T) {
	f := func(err error, path string, want ...string) {
		t.Helper()
		d := newDesk(t, allKinds, broken{err})
		d.ask(t, path, who{"user": "42"})
		if got := append(d.nonZero(t, "tidegate_decisions_total"), d.nonZero(t, "tidegate_requests_total")...); !slices.Equal(got, want) {
			t.Errorf("%s, %v: got %q, want %q", path, err, got, want)
		}
	}
	down := errors.New("connection refused")
	f(down, "/api/", `{outcome="error",rule="api"} 1`, `{outcome="error",rule="site"} 1`, `{outcome="failed_open",rule="api"} 1`, `{outcome="failed_open",rule="site"} 1`, `{door="gateway",outcome="error"} 1`)
	f(down, "/closed", `{outcome="error",rule="closed"} 1`, `{outcome="failed_closed",rule="closed"} 1`, `{door="gateway",outcome="error"} 1`)
	f(fmt.Errorf("in line: %w", context.Canceled), "/api/", `{outcome="canceled",rule="api"} 1`, `{door="gateway",outcome="canceled"} 1`)
}

// Limits that belong to no rule are counted together, whatever they are called.
func TestLimitsOfNoRule(t *testing.T) {
	d := newDesk(t, "rules: []\n", memory.New())
	for i := range 10 {
		l := tidegate.MustLimit(tidegate.Spec{Name: fmt.Sprint("limit of ", i), Events: 1, Period: 1e9})
		d.Observe(nil, []tidegate.Check{{Limit: l}}, tidegate.Decision{OK: true, Limit: l})
		d.Observe(nil, []tidegate.Check{{Limit: l}}, tidegate.Decision{Limit: l})
	}
	d.Observe(nil, nil, tidegate.Decision{OK: true})
	d.wants(t, `tidegate_decisions_total{outcome="ok",rule=""} 10`, `tidegate_decisions_total{outcome="refused",rule=""} 10`,
		`tidegate_requests_total{door="gateway",outcome="ok"} 11`)
}

// A metrics page that grows with the number of clients was 5.8 MB at 37,000 of them.
func TestTrap15MetricsHaveNoKeys(t *testing.T) {
	testdep.SkipUnderRace(t)
	d := newDesk(t, allKinds, memory.New())
	series := func() int { return strings.Count(d.page(t), "\n") }
	paths := []string{"/api/x", "/search", "/admin/", "/keyed", "/idea", "/try", "/closed"}
	for _, p := range paths {
		d.ask(t, p, who{"user": "0", "key": "0"})
	}
	before := series()
	for i := range 50_000 {
		key := fmt.Sprint("user-", i)
		d.ask(t, paths[i%len(paths)], who{"user": key, "key": key})
	}
	if after := series(); after != before {
		t.Errorf("%d lines after one key, %d after 50,000", before, after)
	}
	if page := d.page(t); strings.Contains(page, "user-") {
		t.Error("a key is shown")
	}
	if n := d.watched.store.Load().total().Keys; n < 50_000 {
		t.Errorf("the store knows %d keys: were they asked for?", n)
	}
}

// Even names that nobody announced, and that somebody invents, are bounded.
func TestUnknownNamesAreBounded(t *testing.T) {
	d := newDesk(t, "rules: []\n", memory.New())
	for i := range 3000 {
		d.rules.get(fmt.Sprint("rule ", i)).add(outcome.OK)
		d.Ejected(fmt.Sprint("http://upstream-", i), true)
	}
	if n := len(*d.rules.all.Load()); n > maxNames+1 {
		t.Errorf("%d rules are shown", n)
	}
	d.wants(t, `tidegate_decisions_total{outcome="ok",rule="(other)"} 2000`, `tidegate_upstream_ejections_total{upstream="(other)"} 1`)
}

// Keys that are forgotten are shown, also those of limits that no file has: of CL.THROTTLE, of overrides.
func TestForgottenKeysOfNoRule(t *testing.T) {
	store := memory.Open(memory.Config{MaxBytes: 64 << 10})
	d := newDesk(t, "rules: [{ name: api, match: /api/, per: ip, limits: 5/minute }]\n", store)
	brought := tidegate.MustLimit(tidegate.Spec{Name: "brought", Events: 2, Period: time.Hour, Terms: &tidegate.Terms{Rule: "brought"}})
	for i := range 5000 {
		if _, err := store.Take(t.Context(), []tidegate.Check{{Key: fmt.Sprint(i), Limit: brought, Cost: 1}}, 1); err != nil {
			t.Fatal(err)
		}
	}
	n := store.Stats().Forgotten
	if n == 0 {
		t.Fatal("nothing was forgotten")
	}
	d.wants(t, `tidegate_rule_store_forgotten_total{rule="api"} 0`, fmt.Sprint("tidegate_store_forgotten_total ", n))
}

// At a reload, rules that stay keep their counts, those that are gone go. Names that no file has, such as that of
// CL.THROTTLE, keep theirs.
func TestSetRules(t *testing.T) {
	d := newDesk(t, allKinds, memory.New())
	d.ask(t, "/api/", who{"user": "42"})
	elsewhere := tidegate.MustLimit(tidegate.Spec{Name: "x", Events: 1, Period: 1e9, Terms: &tidegate.Terms{Rule: "cl.throttle"}})
	d.gateway.ObserveMany(&tidegate.Decision{Limit: elsewhere}, 3)
	d.SetRules([]string{"site", "new"}, nil)
	d.wants(t, `tidegate_decisions_total{outcome="refused",rule="cl.throttle"} 3`)
	d.wants(t, `tidegate_decisions_total{outcome="ok",rule="site"} 1`, `tidegate_decisions_total{outcome="ok",rule="new"} 0`)
	if strings.Contains(d.page(t), `rule="api"`) {
		t.Error("a rule that is gone is shown")
	}
	d.ask(t, "/api/", who{"user": "42"}) // decided by the old rules: late, and counted
	d.wants(t, `tidegate_decisions_total{outcome="ok",rule="api"} 1`, `tidegate_decisions_total{outcome="ok",rule="site"} 2`)
	for range 3 {
		d.SetRules([]string{"site"}, nil)
		if strings.Contains(d.page(t), `rule="api"`) {
			t.Error("a rule that is gone is shown after the next reload")
		}
	}
	d.gateway.ObserveMany(&tidegate.Decision{Limit: elsewhere}, 4)
	d.wants(t, `tidegate_decisions_total{outcome="refused",rule="cl.throttle"} 7`)
}

func TestAllocsOfObserve(t *testing.T) {
	d := newDesk(t, allKinds, memory.New())
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 1, Period: 1e9, Terms: &tidegate.Terms{Rule: "api"}})
	s := tidegate.MustLimit(tidegate.Spec{Name: "site", Events: 1, Period: 1e9, Terms: &tidegate.Terms{Rule: "site"}})
	checks := []tidegate.Check{{Limit: l}, {Limit: l}, {Limit: s}}
	f := func(dec tidegate.Decision) {
		t.Helper()
		if n := testing.AllocsPerRun(1000, func() { d.Observe(nil, checks, dec) }); n != 0 {
			t.Errorf("%+v: %v allocations", dec, n)
		}
		if n := testing.AllocsPerRun(1000, func() { d.gateway.ObserveMany(&dec, 2) }); n != 0 {
			t.Errorf("many of %+v: %v allocations", dec, n)
		}
	}
	f(tidegate.Decision{OK: true, Limit: l})
	f(tidegate.Decision{Limit: l})
	f(tidegate.Decision{Limit: l, Err: errors.New("down")})
}

func TestObserveAtOnce(t *testing.T) {
	d := newDesk(t, allKinds, memory.New())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				d.ask(t, "/other", nil)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			d.SetRules([]string{"site"}, nil)
			d.page(t)
		}
	})
	wg.Wait()
	d.wants(t, `tidegate_decisions_total{outcome="ok",rule="site"} 2000`)
}

// Somebody who has looked a combination up counts, however often the rules change before.
func TestRulesChangeBeforeACount(t *testing.T) {
	for changes := range 5 {
		d := newDesk(t, allKinds, memory.New())
		l := tidegate.MustLimit(tidegate.Spec{Name: "site", Events: 1, Period: 1e9, Terms: &tidegate.Terms{Rule: "site"}})
		c := d.combination([]tidegate.Check{{Limit: l}})
		c.add(d.gateway.index, 3)
		for range changes {
			d.SetRules([]string{"site"}, nil)
		}
		c.add(d.gateway.index, 4)
		d.wants(t, `tidegate_decisions_total{outcome="ok",rule="site"} 7`)
		d.SetRules([]string{"site"}, nil)
		d.wants(t, `tidegate_decisions_total{outcome="ok",rule="site"} 7`)
	}
}

func BenchmarkObserve(b *testing.B) {
	d := newDesk(b, allKinds, memory.New())
	l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 1, Period: 1e9, Terms: &tidegate.Terms{Rule: "api"}})
	s := tidegate.MustLimit(tidegate.Spec{Name: "site", Events: 1, Period: 1e9, Terms: &tidegate.Terms{Rule: "site"}})
	checks := []tidegate.Check{{Limit: l}, {Limit: l}, {Limit: s}}
	b.ReportAllocs()
	for b.Loop() {
		d.Observe(nil, checks, tidegate.Decision{OK: true, Limit: l})
	}
}

// Many decisions that ended alike count as that many one by one do.
func TestManyCountAsOneByOne(t *testing.T) {
	limit := tidegate.MustLimit(tidegate.Spec{Name: "x", Events: 5, Period: time.Minute, Terms: &tidegate.Terms{Rule: "api"}})
	for _, d := range []tidegate.Decision{
		{OK: true, Granted: 1, Limit: limit},
		{Limit: limit},
		{Limit: limit, Never: true},
		{OK: true, Limit: limit, Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}},
		{Limit: limit, Receipt: tidegate.Receipt{Origin: tidegate.OriginLocal}},
		{Limit: limit, Queued: true},
		{Limit: limit, Receipt: tidegate.Receipt{Origin: tidegate.OriginRemembered}},
		{OK: true, Limit: limit, Err: errors.New("away")},
		{Limit: limit, Err: errors.New("away")},
		{Limit: limit, Err: context.Canceled},
		{OK: true},
	} {
		one, many := newDesk(t, allKinds, memory.New()), newDesk(t, allKinds, memory.New())
		var checks []tidegate.Check
		if d.Limit != nil {
			checks = []tidegate.Check{{Key: "k", Limit: limit, Cost: 1}}
		}
		for range 7 {
			one.gateway.Observe(nil, checks, d)
		}
		many.gateway.ObserveMany(&d, 7)
		for _, name := range []string{"tidegate_decisions_total", "tidegate_requests_total", "tidegate_decided_total"} {
			if got, want := fmt.Sprint(many.nonZero(t, name)), fmt.Sprint(one.nonZero(t, name)); got != want {
				t.Errorf("%+v: %s is %s, one by one %s", d, name, got, want)
			}
		}
	}
}
