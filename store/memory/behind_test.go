package memory

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A bucket that is empty when the clock is set back refills from the new time on: a slot
// does not say when it was written.
func TestBucketAMomentBehind(t *testing.T) {
	now := time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC)
	s := Open(Config{Now: func() time.Time { return now }})
	l := tidegate.MustLimit(tidegate.Spec{Name: "bucket", Algorithm: tidegate.TokenBucket, Events: 4, Period: time.Minute})
	checks := []tidegate.Check{{Key: "ann", Limit: l, Cost: 1}}
	if d, err := s.Take(t.Context(), checks, 4); err != nil || d.Granted != 4 {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, behind := range []time.Duration{time.Second, 10 * time.Minute} {
		now = now.Add(-behind)
		if d, err := s.Take(t.Context(), checks, 1); err != nil || d.OK || d.RetryAfter != 15*time.Second {
			t.Errorf("set back by %s: %+v, %v, want a retry in 15s", behind, d, err)
		}
	}
}
