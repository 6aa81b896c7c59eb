package telemetry

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// shown returns the counters of decisions, without the names of doors.
func shown(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		switch f.GetName() {
		case "tidegate_requests_total", "tidegate_decisions_total", "tidegate_decided_total":
		default:
			continue
		}
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() != "door" {
					name += " " + l.GetValue()
				}
			}
			if n := m.GetCounter().GetValue(); n > 0 {
				all[name] += n
			}
		}
	}
	return all
}

// Combinations change nothing that is counted: a door that has none counts the same, whatever
// the number of rules and of their combinations, wherever their names lie, and while rules change.
func TestCombinationsCountTheSame(t *testing.T) {
	for _, rules := range []int{1, 3, 12, 40} {
		t.Run(fmt.Sprint(rules), func(t *testing.T) {
			fast, plain := prometheus.NewRegistry(), prometheus.NewRegistry()
			a, b := New(fast, "memory"), New(plain, "memory")
			door := &a.gateway
			var last *Door
			for i := range maxDoors {
				last = b.Door(fmt.Sprint("door-", i))
			}
			lists := offenders.New(offenders.Options{})
			defer lists.Close()
			a.Tell(lists)
			var names []string
			limits := make([][]*tidegate.Limit, rules)
			for i := range rules {
				names = append(names, fmt.Sprint("rule-", i))
				for range 3 { // the last has its name from elsewhere, as that of an override may
					limits[i] = append(limits[i], limitOfRule(names[i]))
				}
				limits[i][2] = limitOfRule(strings.Clone(names[i]))
			}
			random := rand.New(rand.NewPCG(uint64(rules), 7))
			for i := range 6000 {
				if i%1000 == 0 {
					now := names[:max(1, rules-i/1000%3)]
					a.SetRules(now, nil)
					b.SetRules(now, nil)
				}
				var checks []tidegate.Check
				for r := range rules {
					if random.IntN(rules) > 3 {
						continue
					}
					for range 1 + random.IntN(3) {
						l := limits[r][random.IntN(3)]
						checks = append(checks, tidegate.Check{Key: "x", Limit: l, Advisory: random.IntN(9) == 0, Over: random.IntN(50) == 0})
					}
				}
				d := tidegate.Decision{OK: random.IntN(20) > 0, Soft: random.IntN(20) == 0}
				if len(checks) > 0 {
					d.Limit = checks[random.IntN(len(checks))].Limit
				}
				if random.IntN(10) == 0 {
					d.Receipt.Origin = tidegate.OriginLocal
				}
				door.Decided(checks, &d)
				last.Decided(checks, &d)
				door.ObserveMany(&d, 3)
				last.ObserveMany(&d, 3)
				if i%500 == 499 {
					got, want := shown(t, fast), shown(t, plain)
					if !maps.Equal(got, want) {
						t.Fatalf("after %d: got  %v\nwant %v", i+1, got, want)
					}
				}
			}
			for _, door := range b.doors[maxDoors:] {
				if b.combinedCounts().all != 0 || door.index < maxDoors {
					t.Fatal("the other door has combinations, too")
				}
			}
			if a.combinedCounts().all == 0 {
				t.Error("nothing was counted in combinations")
			}
			totals := make(map[string]uint64)
			for _, total := range a.Totals() {
				totals[total.Rule+" "+total.Outcome] = total.Count
			}
			for _, total := range b.Totals() {
				if got := totals[total.Rule+" "+total.Outcome]; got != total.Count {
					t.Errorf("total %s %s: got %d, want %d", total.Rule, total.Outcome, got, total.Count)
				}
			}
		})
	}
}

// Lists hear of every rule of a combination, by the key of its own check.
func TestCombinationsTellLists(t *testing.T) {
	m := New(prometheus.NewRegistry(), "memory")
	lists := offenders.New(offenders.Options{})
	defer lists.Close()
	m.Tell(lists)
	var checks []tidegate.Check
	for i := range maxCombined + 2 {
		l := limitOfRule(fmt.Sprint("rule-", i))
		for range 1 + i%3 {
			checks = append(checks, tidegate.Check{Key: fmt.Sprint("key-", i), Limit: l})
		}
		for range 2 { // one makes the combination, if there can be one
			m.Decided(checks, &tidegate.Decision{OK: true, Limit: l})
		}
	}
	seen := make(map[string]int64)
	for _, l := range lists.Snapshot(offenders.Query{By: offenders.Requests, Minutes: 1}).Lists {
		for _, e := range l.Entries {
			seen[l.Rule+" "+e.Subject[0].Value] += e.Count
		}
	}
	for i := range maxCombined + 2 {
		if want := int64(2 * (maxCombined + 2 - i)); seen[fmt.Sprintf("rule-%d key-%d", i, i)] != want {
			t.Errorf("rule-%d has %v, want key-%d %d times", i, seen, i, want)
		}
	}
	if len(seen) != maxCombined+2 {
		t.Errorf("seen: %v", seen)
	}
}
