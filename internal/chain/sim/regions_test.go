package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Regions keep what is promised of them, whatever happens to them.
func TestRegionsPromise(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := RandomRegions(seed, 30)
			report := Run(s, bubble(t), nil)
			if len(report.Violations) > 0 || report.Decisions < 1000 {
				t.Errorf("%s: %d decisions, %s", s.Describe(), report.Decisions, strings.Join(report.Violations, "\n"))
			}
		})
	}
}

// Trouble that the promise does not know of is noticed: regions that do not hear of each other.
func TestUnknownPartitionIsNoticed(t *testing.T) {
	for _, on := range []tidegate.OnPartition{tidegate.PartitionContinue, tidegate.PartitionShare} {
		s := Scenario{
			Name: "regions", Seed: 1, Nodes: 9, Lasts: 6 * time.Second,
			Regions: Regions{Count: 3, Latency: 50 * time.Millisecond},
			Subjects: []Subject{{Name: "hot", PerSecond: 900, Versions: []*tidegate.Limit{tidegate.MustLimit(tidegate.Spec{
				Name: "hot", Events: 300, Period: time.Second, Algorithm: tidegate.FixedWindow,
				Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual, OnPartition: on}},
			})}}},
		}
		if report := Run(s, bubble(t), nil); len(report.Violations) > 0 {
			t.Error(report.Violations)
		}
		s.Regions.Cuts = []Cut{{Span{2 * time.Second, 5 * time.Second}, 1}}
		s.complete()
		r := &run{s: &s}
		bubble(t)(r.play)
		s.Regions.Cuts = nil
		wantBroken(t, r.report(), "could not know of")
	}
}
