package sim

import (
	"flag"
	"testing"
	"testing/synctest"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

var seed = flag.Uint64("seed", 1, "the first seed of random scenarios")

func bubble(t *testing.T) Bubble {
	return func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
}

// Random fleets keep their promises. `make sim` runs many more, and larger ones.
func TestRandomFleets(t *testing.T) {
	count := uint64(30)
	if testdep.RaceEnabled {
		count = 8
	}
	for s := *seed; s < *seed+count; s++ {
		report := Run(random(s, 200, 2000), bubble(t), nil)
		if report.Decisions == 0 {
			t.Errorf("seed %d: nothing was decided", s)
		}
		for _, v := range report.Violations {
			t.Errorf("%s\n%s", v, report.Scenario.Describe())
		}
	}
}
