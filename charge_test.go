package tidegate_test

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// What is given back is there again at once, whatever the algorithm and however much
// it was, and nothing beside it: what others were charged stays.
func TestChargeIsGivenBack(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for _, algorithm := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog,
		tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota,
	} {
		for _, cost := range []int64{1, 2, 4} {
			spec := tidegate.Spec{Name: "l", Events: 10, Period: time.Hour, Algorithm: algorithm}
			if algorithm == tidegate.Quota {
				spec.Period, spec.Calendar = 0, tidegate.Day
			}
			limit := tidegate.MustLimit(spec)
			spec.Name, spec.Events = "other", 3
			other := tidegate.MustLimit(spec)
			store := memory.Open(memory.Config{Now: func() time.Time { return now }})
			both := vector{{Key: "a", Limit: limit, Cost: cost}, {Key: "b", Limit: other, Cost: 1, Advisory: true}, {Key: "a", Limit: limit}}
			gate := tidegate.NewGate(both, store)
			var charge tidegate.Charge
			enter := func() {
				t.Helper()
				if d, visit := gate.EnterCharged(t.Context(), &tidegate.Request{}, &charge); !d.OK || visit != nil {
					t.Fatalf("%s: %+v, %v", algorithm, d, visit)
				}
			}
			enter()
			charge.Keep()
			for range 20 {
				enter()
				now = now.Add(time.Second)
				if err := charge.Return(t.Context()); err != nil {
					t.Fatal(err)
				}
				charge.Keep() // ended: nothing happens
			}
			wantLeft(t, tidegate.New(store, limit), "a", 10-cost)
			wantLeft(t, tidegate.New(store, other), "b", 2)
		}
	}
}

// A turn in a line is given back with its wait.
func TestChargeOfATurnIsGivenBack(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	limit := tidegate.MustLimit(tidegate.Spec{Name: "l", Events: 1, Period: time.Minute, Burst: 5, Algorithm: tidegate.LeakyBucket})
	store := memory.Open(memory.Config{Now: func() time.Time { return now }})
	gate := tidegate.NewGate(vector{{Key: "a", Limit: limit, Cost: 1, MaxWait: time.Hour}}, store)
	var charge tidegate.Charge
	for i, want := range []time.Duration{0, time.Minute, time.Minute, time.Minute} {
		d, _ := gate.EnterCharged(t.Context(), &tidegate.Request{}, &charge)
		if !d.OK || d.Wait != want {
			t.Errorf("turn %d: %+v, want to wait %s", i, d, want)
		}
		if i == 0 {
			charge.Keep()
		} else if err := charge.Return(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A visit that is void gives back all it is about, whatever was found meanwhile.
func TestVoidVisitGivesAllBack(t *testing.T) {
	limit := func(name string, terms tidegate.Terms) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: name, Events: 5, Period: time.Hour, Terms: &terms})
	}
	status := limit("status", tidegate.Terms{AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 400, To: 599}}}})
	estimate := limit("estimate", tidegate.Terms{AtEnd: tidegate.AtEnd{Settle: "response.header.Cost"}})
	plain := limit("plain", tidegate.Terms{})
	slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 5, Period: time.Minute, Algorithm: tidegate.Concurrency})
	store := memory.New()
	gate := tidegate.NewGate(vector{
		{Key: "a", Limit: status, Cost: 1},
		{Key: "a", Limit: estimate, Cost: 3, Estimate: true},
		{Key: "a", Limit: plain, Cost: 2},
		{Key: "a", Limit: slots, Cost: 1},
	}, store)
	var charge tidegate.Charge
	d, visit := gate.EnterCharged(t.Context(), &tidegate.Request{}, &charge)
	if !d.OK || visit == nil {
		t.Fatalf("%+v", d)
	}
	visit.Found("response.header.Cost", 4)
	if err := visit.End(tidegate.Outcome{Void: true, Status: 502}); err != nil {
		t.Error(err)
	}
	if err := charge.Return(t.Context()); err != nil {
		t.Error(err)
	}
	for _, l := range []*tidegate.Limit{status, estimate, plain, slots} {
		wantLeft(t, tidegate.New(store, l), "a", 5)
	}
}

// Whoever is refused has nothing to give back.
func TestRefusedChargeIsEmpty(t *testing.T) {
	limit := tidegate.PerHour(1)
	store := memory.New()
	gate := tidegate.NewGate(vector{{Key: "a", Limit: limit, Cost: 1}}, store)
	var charge tidegate.Charge
	gate.EnterCharged(t.Context(), &tidegate.Request{}, &charge)
	charge.Keep()
	if d, _ := gate.EnterCharged(t.Context(), &tidegate.Request{}, &charge); d.OK {
		t.Fatalf("%+v", d)
	}
	if err := charge.Return(t.Context()); err != nil {
		t.Error(err)
	}
	wantLeft(t, tidegate.New(store, limit), "a", 0)
}
