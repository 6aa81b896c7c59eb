package memory_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/gracetest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// A store that is written to a file and read again before every request decides about limits that give way
// for a while as one that never was.
func TestGraceAcrossRestarts(t *testing.T) {
	testdep.SkipUnderRace(t)
	gracetest.Run(t, func(t *testing.T, _ *rand.Rand, now func() time.Time) func() tidegate.Store {
		c := memory.Config{Now: now}
		s, path := memory.Open(c), filepath.Join(t.TempDir(), "snapshot")
		return func() tidegate.Store {
			if err := s.Snapshot(path); err != nil {
				t.Fatal(err)
			}
			var err error
			if s, err = memory.Restore(path, c); err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
