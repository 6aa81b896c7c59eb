package rules_test

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/edits"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// A thousand edits of rule files of each kind, two versions at a time, on counters in memory.
func TestThousandEdits(t *testing.T) {
	most := 1000
	if testdep.RaceEnabled { // which only takes time where one goroutine asks
		most = 150
	}
	edits.Run(t, most, func(_ *testing.T, now func() time.Time) []tidegate.Store {
		s := memory.Open(memory.Config{Now: now})
		return []tidegate.Store{s, s}
	})
}

// The same of everything that a rule says about its limits.
func TestThousandWideEdits(t *testing.T) {
	most := 1000
	if testdep.RaceEnabled { // which only takes time where one goroutine asks
		most = 150
	}
	edits.RunWide(t, most, func(_ *testing.T, now func() time.Time) []tidegate.Store {
		s := memory.Open(memory.Config{Now: now})
		return []tidegate.Store{s, s}
	})
}
