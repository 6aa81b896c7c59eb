package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// eventualLimits are of every algorithm that can be.
func eventualLimits() (all []*tidegate.Limit) {
	for _, a := range []tidegate.Algorithm{tidegate.SubWindows, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.Quota} {
		spec := tidegate.Spec{Name: a.String(), Events: 2000, Period: 2 * time.Second, Algorithm: a, Terms: eventually}
		if a == tidegate.Quota {
			spec.Period, spec.Calendar = 0, tidegate.Day
		}
		all = append(all, tidegate.MustLimit(spec))
	}
	return all
}

// Fleets of any size keep what is promised of exchanged counts, and the simulator notices where as
// much is admitted again a second later.
func TestEventualPromise(t *testing.T) {
	testdep.SkipUnderRace(t)
	for i, l := range eventualLimits() {
		for j, nodes := range []int{2, 8, 40} {
			if j != i%3 && !testdep.Long() {
				continue // every size is seen
			}
			t.Run(fmt.Sprint(l.Name, " ", nodes), func(t *testing.T) {
				s := hot(l)
				s.Nodes, s.Skew, s.Server.Skew = nodes, 2*time.Second, -time.Minute
				s.complete()
				r := &run{s: &s}
				bubble(t)(r.play)
				if report := r.report(); len(report.Violations) > 0 || report.Decisions < 3000 {
					t.Errorf("%d decisions, %s", report.Decisions, strings.Join(report.Violations, "\n"))
				}
				for _, load := range r.loads {
					for key, log := range load.logs {
						for _, a := range log {
							a.at += time.Second.Nanoseconds()
							load.logs[key] = append(load.logs[key], a)
						}
					}
				}
				wantBroken(t, r.report(), "which instances could not know of")
			})
		}
	}
}

// So they do in every trouble.
func TestEventualInTrouble(t *testing.T) {
	testdep.SkipUnderRace(t)
	for i, l := range eventualLimits() {
		for j, text := range []string{"down 2s+2s", "empty 2s+1s", "failover 2s+1s lag 200ms", "silent 2s+2s of 1 nodes", "stall 2s+1s", "slow 2s+2s extra 100ms", "crash 2s+1s of 1 nodes"} {
			if j%2 != i%2 && !testdep.Long() {
				continue // every fault is seen with two algorithms
			}
			if testdep.RaceEnabled && j%4 != i {
				continue // with one
			}
			f, err := ParseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			s := hot(l)
			s.Faults = []Fault{f}
			for _, v := range Run(s, bubble(t), nil).Violations {
				t.Errorf("%s: %s", text, v)
			}
		}
	}
}
