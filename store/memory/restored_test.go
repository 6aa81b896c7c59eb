package memory

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A snapshot for which there is not enough memory loses the keys that hold nobody back, and those are counted.
func TestRestoreIntoASmallerStoreKeepsExhaustedKeys(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		s, clock := openAt(2 << 20)
		l := tidegate.MustLimit(specOf("limit", a, 3, 24*time.Hour, tidegate.EvictLeast))
		const keys = 5000
		for k := range keys {
			ask1(t, s, l, fmt.Sprint(k))
			for range 2 * (k % 10 / 9) {
				ask1(t, s, l, fmt.Sprint(k))
			}
		}
		path := filepath.Join(t.TempDir(), "snapshot")
		if err := s.Snapshot(path); err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(path, Config{MaxBytes: 96 << 10, Now: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		if st := restored.Stats(); st.Keys+st.Forgotten != keys || st.Forgotten != st.Evicted || st.Bytes > 96<<10 {
			t.Errorf("%s: %+v", a, st)
		}
		again := 0
		for k := 9; k < keys; k += 10 {
			if ask1(t, restored, l, fmt.Sprint(k)).OK {
				again++
			}
		}
		if again > 0 {
			t.Errorf("%s: %d exhausted keys of %d are admitted again", a, again, keys/10)
		}
	}
}
