package sim

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestOverlap(t *testing.T) {
	const s = time.Second
	f := func(want float64, in Span, all ...Span) {
		t.Helper()
		if got := overlap(all, in); got != want {
			t.Errorf("%v of %v: %g s, want %g", in, all, got, want)
		}
	}
	f(0, Span{0, s})
	f(0, Span{s, 2 * s}, Span{0, s}, Span{2 * s, 3 * s})
	f(1, Span{0, 10 * s}, Span{2 * s, 3 * s})
	f(1, Span{2 * s, 3 * s}, Span{0, 10 * s})
	f(2, Span{0, 10 * s}, Span{3 * s, 4 * s}, Span{2 * s, 4 * s}, Span{3 * s, 4 * s})
	f(3, Span{0, 10 * s}, Span{8 * s, 12 * s}, Span{2 * s, 3 * s})
	f(4, Span{0, 10 * s}, Span{1 * s, 5 * s}, Span{2 * s, 3 * s})
}

// A lost message excuses only what its connection stood still for: nodes that decide by
// themselves for other reasons are noticed on such a network as well.
func TestLossExcusesLittle(t *testing.T) {
	for _, l := range judged {
		s := hot(l)
		s.Network.Loss = 0.0002
		if r := hidden(t, s); len(r.Violations) > 0 {
			t.Errorf("%s: %q", l, r.Violations)
		}
	}
	for _, l := range judged[:1] {
		s := hot(l)
		s.Network.Loss = 0.00001
		wantBroken(t, hidden(t, s, Fault{Kind: Silent, At: time.Second, For: 4 * time.Second, Nodes: []int{0, 1}}), "more than the limit")
	}
}

// Windows that are all a little above the limit are noticed, although each is within the bound
// of one.
func TestWindowsAreAddedUp(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		l := tidegate.MustLimit(tidegate.Spec{Name: "x", Events: 3, Period: 100 * time.Millisecond, Algorithm: a})
		s := Scenario{Nodes: 20, Lasts: 8 * time.Second, Subjects: []Subject{{Versions: []*tidegate.Limit{l}}}}
		s.complete()
		s.Faults = []Fault{{Kind: Silent, At: time.Second, For: 3 * time.Second}}
		r := &run{s: &s, start: time.Unix(0, 0)}
		r.server = newServer(&s, r.start)
		load := newLoad(r, 0)
		check := func(each int64) (broken []string) {
			load.logs[0] = nil
			for at := int64(1e9); at < 4e9; at += 100e6 {
				for i := range each {
					load.logs[0] = append(load.logs[0], admission{at: at + i*90e6/each, local: true})
				}
			}
			return load.check()
		}
		if broken := check(3); len(broken) > 0 {
			t.Errorf("%s: %q", a, broken)
		}
		if broken := check(12); len(broken) == 0 {
			t.Errorf("%s: four times the limit in every window was not noticed", a)
		}
	}
}
