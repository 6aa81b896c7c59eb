package main

import (
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
)

// Each promise is one that a wrong store would break.
func TestBroken(t *testing.T) {
	s := size{keys: 1000, maxBytes: 1_000_000}
	good := outcome{Came: 1000, Keys: 500, Evicted: debtors + 500, Forgotten: debtors + 500, Admitted: 1000, MaxKeys: debtors + 1000, MaxTable: 900_000, PeakRSS: 9_000_000}
	f := func(name, want string, change func(o *outcome)) {
		t.Helper()
		i := slices.IndexFunc(cases, func(c floodCase) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("no such case: %q", name)
		}
		c := cases[i]
		o := good
		change(&o)
		got := strings.Join(c.broken(s, o), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: broken %q, want %q", name, got, want)
		}
	}
	for _, c := range cases {
		f(c.name, "", func(*outcome) {})
		f(c.name, "the table had", func(o *outcome) { o.MaxTable = 1_000_001 })
		f(c.name, "resident", func(o *outcome) { o.PeakRSS = 70_000_000 })
		f(c.name, "room for", func(o *outcome) {
			o.MaxKeys = 500
			o.Admitted, o.Forgotten = 100_000, 100_000+debtors-o.Keys
			o.Evicted = o.Forgotten
		})
		f(c.name, "came within", func(o *outcome) { o.Came = 999 })
		f(c.name, "neither", func(o *outcome) { o.Wrong = 1 })
		f(c.name, "refused for want of room", func(o *outcome) { o.Refused = 3 })
		f(c.name, "knew 20000 debtors no more", func(o *outcome) { o.AsNew = 20_000 })
		f(c.name, "counted as forgotten", func(o *outcome) { o.Forgotten, o.Evicted = o.Forgotten-1, o.Evicted-1 })
	}
	forgotten := func(o *outcome) { o.Again, o.Keys = 1, o.Keys+1 }
	f("light", "were forgotten", forgotten)
	f("heavy-evict", "", forgotten)
	f("heavy-refuse", "were forgotten", forgotten)
	f("heavy-evict", "others are to be evicted", func(o *outcome) { o.Refused, o.RefusedFull = 1, 1 })
	f("heavy-refuse", "new ones are to be refused", func(o *outcome) { o.Evicted-- })
}

func TestRulesBroken(t *testing.T) {
	s := size{keys: 1000, maxBytes: 1_000_000}
	good := rulesOutcome{Came: 1000, Tried: 10, Asked: 10, Forgotten: 100, MaxTable: 900_000, PeakRSS: 9_000_000}
	f := func(want string, change func(o *rulesOutcome)) {
		t.Helper()
		for _, c := range rulesCases() {
			o := good
			change(&o)
			got := strings.Join(c.broken(s, o), "\n")
			if (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s: broken %q, want %q", c.name(), got, want)
			}
		}
	}
	f("", func(*rulesOutcome) {})
	f("came within", func(o *rulesOutcome) { o.Came = 999 })
	f("the tables had", func(o *rulesOutcome) { o.MaxTable = 1_000_001 })
	f("resident", func(o *rulesOutcome) { o.PeakRSS = 70_000_000 })
	f("blocked addresses", func(o *rulesOutcome) { o.Again = 1 })
	f("blocked addresses", func(o *rulesOutcome) { o.Tried = 0 })
	f("steady clients", func(o *rulesOutcome) { o.Held = 1 })
	f("other rules", func(o *rulesOutcome) { o.OthersLost = 1 })
}

// The cases themselves run, and small ones hold.
func TestRulesPlayed(t *testing.T) {
	for _, c := range rulesCases() {
		s := size{keys: 20_000, maxBytes: 24 << 20}
		o, err := c.play(t.Context(), s)
		o.PeakRSS = 0 // of all of them together
		if got := c.broken(s, o); err != nil || len(got) > 0 {
			t.Errorf("%s: %v (%v)", c.name(), got, err)
		}
	}
}

// Without -case, every policy is played against what a rule gets that names no algorithm,
// and against every algorithm.
func TestDefaultRunHasEveryKind(t *testing.T) {
	played := make(map[string]bool)
	for _, f := range floods(size{}, size{}) {
		played[f.name] = true
	}
	kinds := []string{"default"}
	for a := range tidegate.Deny {
		if a != tidegate.Auto {
			kinds = append(kinds, a.String())
		}
	}
	for _, kind := range kinds {
		if !played[kind+"-evict"] || !played[kind+"-refuse"] && kind != tidegate.Concurrency.String() {
			t.Errorf("%s: not every policy is played: %v", kind, played)
		}
	}
}
