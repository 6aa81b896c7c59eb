package rls

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/rules/envoy"
	"tidegate.dev/tidegate/store/memory"
)

// A window that nobody has used ends when the store's own does, whatever the unit and the day.
func TestUnusedWindowEndsWithTheStores(t *testing.T) {
	set, err := envoy.Load([]envoy.File{{Name: "config.yaml", Text: []byte("domain: d")}}, envoy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 2, 25, 0, 0, 0, 0, time.UTC)
	for unit := envoy.Second; unit <= envoy.Week; unit++ {
		rule, err := set.Domain("d").Override(5, unit)
		if err != nil {
			t.Fatal(err)
		}
		none, err := set.Domain("d").Override(0, unit)
		if err != nil {
			t.Fatal(err)
		}
		for hours := range 24 * 20 {
			now := from.Add(time.Duration(hours)*time.Hour + 1234567*time.Microsecond)
			store := memory.Open(memory.Config{Now: func() time.Time { return now }})
			check := []tidegate.Check{{Key: "k", Limit: rule.Limits[0], Cost: 1}}
			d, err := store.Take(context.Background(), check, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range []*envoy.Rule{rule, none} {
				unused := descriptor{rule: of, decision: tidegate.Decision{Limit: of.Limits[0]}}
				if got := resetOf(&unused, now); got.Truncate(time.Microsecond) != d.ResetAfter.Truncate(time.Microsecond) {
					t.Fatalf("%v, %d requests, at %v: ends in %v, in the store in %v", unit, of.RequestsPerUnit, now, got, d.ResetAfter)
				}
			}
		}
	}
}
