package sim

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// hot is three nodes at three times the limit of one key.
func hot(l *tidegate.Limit) Scenario {
	return Scenario{
		Name: "hot", Seed: 1, Nodes: 3, Lasts: 6 * time.Second,
		Subjects: []Subject{{Name: "hot", Versions: []*tidegate.Limit{l}, Keys: 2, Load: 3}},
		Network:  Network{Latency: 2 * time.Millisecond, Jitter: time.Millisecond},
	}
}

// hidden plays a scenario with faults that the promises do not know of.
func hidden(t *testing.T, s Scenario, faults ...Fault) *Report {
	t.Helper()
	s.complete()
	known := s.Faults
	s.Faults = faults
	r := &run{s: &s}
	bubble(t)(r.play)
	s.Faults = known
	return r.report()
}

func wantBroken(t *testing.T, r *Report, text string) {
	t.Helper()
	if all := strings.Join(r.Violations, "\n"); !strings.Contains(all, text) {
		t.Errorf("violations %q, want one with %q", all, text)
	}
}

var judged = []*tidegate.Limit{
	bucket("bucket", 50, 100),
	tidegate.MustLimit(tidegate.Spec{Name: "window", Events: 100, Period: time.Hour, Algorithm: tidegate.FixedWindow}),
	tidegate.MustLimit(tidegate.Spec{Name: "log", Events: 100, Period: 3 * time.Second, Algorithm: tidegate.SlidingLog}),
	tidegate.MustLimit(tidegate.Spec{Name: "sliding", Events: 100, Period: time.Minute, Algorithm: tidegate.SlidingWindow}),
	tidegate.MustLimit(tidegate.Spec{Name: "quota", Events: 100, Calendar: tidegate.Day, Algorithm: tidegate.Quota}),
	tidegate.MustLimit(tidegate.Spec{Name: "parts", Events: 100, Period: 10 * time.Second, Algorithm: tidegate.SubWindows}),
}

// A Redis that forgets its counters is noticed, whatever the algorithm; one that does not, is not.
func TestLostCountersAreNoticed(t *testing.T) {
	for _, l := range judged {
		if r := hidden(t, hot(l)); len(r.Violations) > 0 {
			t.Errorf("%s: %q", l, r.Violations)
		}
		wantBroken(t, hidden(t, hot(l), Fault{Kind: Empty, At: 2 * time.Second, For: time.Millisecond}), "more than the limit")
	}
}

// Nodes that decide by themselves while nothing is the matter are noticed.
func TestUnownedLocalDecisionsAreNoticed(t *testing.T) {
	for _, l := range judged[:2] {
		wantBroken(t, hidden(t, hot(l), Fault{Kind: Silent, At: time.Second, For: 2 * time.Second, Nodes: []int{0, 1}}), "more than the limit")
	}
}

// Slots: a server that loses the leases admits too many, which is noticed.
func TestLostSlotsAreNoticed(t *testing.T) {
	slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 10, Period: 2 * time.Second, Algorithm: tidegate.Concurrency})
	s := hot(slots)
	s.Subjects[0].Hold = time.Second
	if r := hidden(t, s); len(r.Violations) > 0 || r.Rows[0].Admitted == 0 || r.Rows[0].Refused == 0 {
		t.Errorf("%q, %+v", r.Violations, r.Rows[0])
	}
	wantBroken(t, hidden(t, s, Fault{Kind: Empty, At: 2 * time.Second, For: time.Millisecond}), "slots in use")
}

// The scenarios that ship keep their promises, and use the limit where there is load.
func TestLatencySweepUsesTheLimit(t *testing.T) {
	for i, s := range latencySweep(1) {
		if testdep.RaceEnabled && i%4 != 0 {
			continue
		}
		r := Run(s, bubble(t), nil)
		if used := float64(r.Rows[0].Admitted) / r.Rows[0].Limit; len(r.Violations) > 0 || used < 0.98 {
			t.Errorf("%s: %.3f of the limit used, %q", s.Name, used, r.Violations)
		}
	}
}

// 200 nodes keep their promises, of which 20 are cut off and have less than a request each.
func TestEdgeKeepsItsPromises(t *testing.T) {
	s := edge(1)[0]
	s.Subjects = one("account", bucket("account", 100, 100), 1, 1.5)
	r := Run(s, bubble(t), nil)
	if used := float64(r.Rows[0].Admitted) / r.Rows[0].Limit; len(r.Violations) > 0 || used < 0.9 || r.Rows[0].Local == 0 {
		t.Errorf("%.3f of the limit used, %d by nodes alone, %q", used, r.Rows[0].Local, r.Violations)
	}
}
