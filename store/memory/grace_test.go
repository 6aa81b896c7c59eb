package memory

import (
	"path/filepath"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// always holds every request to the same checks.
type always []tidegate.Check

func (a always) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, a...)
}

// Neither a restart nor a clock that is set back begins another grace, and neither keeps one
// from beginning for good.
func TestGraceOutlastsARestart(t *testing.T) {
	for _, step := range []time.Duration{0, 31 * time.Second, -time.Minute, -time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			now := noon
			c := Config{Now: func() time.Time { return now }}
			limit := tidegate.MustLimit(tidegate.Spec{
				Name: "a", Events: 2, Period: 10 * time.Minute, Algorithm: tidegate.TokenBucket, Terms: &tidegate.Terms{MaxOver: 30 * time.Second},
			})
			ceiling := tidegate.MustLimit(tidegate.Spec{Name: "a", Scope: "ceiling", Events: 100, Period: time.Minute})
			checks := always{{Key: "k", Limit: limit, Cost: 1}, {Key: "k", Limit: ceiling, Cost: 1}}
			s := Open(c)
			soft := func(want bool) {
				t.Helper()
				if d := tidegate.NewGate(checks, s).Decide(t.Context(), &tidegate.Request{}); d.Soft != want {
					t.Errorf("at %s: %+v, want soft %t", now.Sub(noon), d, want)
				}
			}
			soft(false)
			soft(false)
			soft(true)
			now = now.Add(30 * time.Second)
			soft(false) // refused
			path := filepath.Join(t.TempDir(), "snapshot")
			if err := s.Snapshot(path); err != nil {
				t.Fatal(err)
			}
			now = now.Add(step)
			var err error
			if s, err = Restore(path, c); err != nil {
				t.Fatal(err)
			}
			soft(false)
			now = now.Add(24 * time.Hour)
			soft(false)
			soft(false)
			soft(true)
		})
	}
}
