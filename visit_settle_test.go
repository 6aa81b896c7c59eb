package tidegate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// estimated is a limit of 110 whose costs are settled from somewhere; others have
// used 10 of it.
func estimated(name, settle string) tidegate.Check {
	return tidegate.Check{Key: "a", Cost: 60, Estimate: true, Limit: tidegate.MustLimit(tidegate.Spec{
		Name: name, Events: 110, Period: time.Hour, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: settle}},
	})}
}

func withOthers(t *testing.T, limits ...*tidegate.Limit) *memory.Store {
	store := memory.New()
	for _, l := range limits {
		tidegate.New(store, l).AllowN(t.Context(), "a", 10)
	}
	return store
}

func TestEndSettlesEstimates(t *testing.T) {
	const field = "response.body.usage.total_tokens"
	f := func(o tidegate.Outcome, left int64, found ...int64) {
		t.Helper()
		c := estimated("tokens", field)
		store := withOthers(t, c.Limit)
		_, visit := tidegate.NewGate(vector{c, {Key: "a", Limit: tidegate.PerHour(9), Cost: 1}}, store).Enter(t.Context(), &tidegate.Request{})
		if visit.Holds() || visit.ByStatus() || !slices.Equal(visit.Sources(), []string{field}) {
			t.Errorf("%+v from %q", visit, visit.Sources())
		}
		for _, cost := range found {
			visit.Found(field, cost)
		}
		for range 2 {
			if err := visit.End(o); err != nil {
				t.Error(err)
			}
		}
		visit.Found(field, 1)
		wantLeft(t, tidegate.New(store, c.Limit), "a", left)
		wantLeft(t, tidegate.New(store, tidegate.PerHour(9)), "a", 8) // known from the start
	}
	known := func(cost int64) tidegate.Outcome { return tidegate.Outcome{Status: 200, Cost: cost, CostKnown: true} }
	f(known(10), 90)
	f(known(60), 40)
	f(known(75), 25) // more than estimated: charged unasked
	f(known(500), 0)
	f(known(0), 100)
	f(known(-3), 100)                    // less than nothing is nothing
	f(tidegate.Outcome{Status: 200}, 40) // not known: it stays charged
	f(tidegate.Outcome{}, 40)
	f(tidegate.Outcome{}, 70, 30)
	f(tidegate.Outcome{}, 100, -30)
	f(tidegate.Outcome{}, 80, 30, 20) // of a stream, the last
	f(known(10), 70, 30)              // what was found goes before
}

// Two rules may look in different places, and an estimate may be counted by
// status as well.
func TestEndSettlesEachEstimateFromItsSource(t *testing.T) {
	in, out, all := estimated("in", "response.body.in"), estimated("out", "response.body.out"), estimated("all", "response.body.out")
	bare := tidegate.Check{Key: "a", Cost: 60, Estimate: true, Limit: tidegate.PerHour(110)}
	failed := estimated("failed", "response.body.in")
	terms := *failed.Limit.Terms
	terms.AtEnd.Counts = []tidegate.StatusRange{{From: 500, To: 599}}
	spec := failed.Limit.Spec
	spec.Terms = &terms
	failed.Limit = tidegate.MustLimit(spec)
	store := withOthers(t, in.Limit, out.Limit, all.Limit, bare.Limit, failed.Limit)
	_, visit := tidegate.NewGate(vector{in, out, all, bare, failed}, store).Enter(t.Context(), &tidegate.Request{})
	if got := strings.Join(visit.Sources(), " "); got != "response.body.in response.body.out" || !visit.ByStatus() {
		t.Errorf("sources %q, by status %t", got, visit.ByStatus())
	}
	visit.Found("response.body.in", 5)
	visit.Found("response.body.out", 7)
	if err := visit.End(tidegate.Outcome{Status: 200, Cost: 9, CostKnown: true}); err != nil {
		t.Error(err)
	}
	for want, c := range map[int64]tidegate.Check{95: in, 93: out, 91: bare, 100: failed} {
		wantLeft(t, tidegate.New(store, c.Limit), "a", want)
	}
	wantLeft(t, tidegate.New(store, all.Limit), "a", 93)
}
