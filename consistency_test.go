package tidegate_test

import (
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Where no algorithm is written, leased and split mean a token bucket, and eventual means
// sub-windows; one that is written stays, and says whether it suits.
func TestConsistencyChoosesTheAlgorithm(t *testing.T) {
	for _, c := range []tidegate.Consistency{tidegate.Strict, tidegate.Leased, tidegate.Split, tidegate.Eventual} {
		for _, events := range []int64{1, 64, 65, 10000} {
			spec := tidegate.Spec{
				Name: "api", Events: events, Period: time.Second,
				Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: c}},
			}
			want := tidegate.TokenBucket
			switch {
			case c == tidegate.Strict && events <= tidegate.AutoLogEvents:
				want = tidegate.SlidingLog
			case c == tidegate.Strict || c == tidegate.Eventual:
				want = tidegate.SubWindows
			}
			if got := tidegate.MustLimit(spec).Algorithm; got != want || !c.Suits(got) {
				t.Errorf("%s %d/s is counted by %s, suits %v; want %s", c, events, got, c.Suits(got), want)
			}
			spec.Algorithm = tidegate.SlidingWindow
			if got := tidegate.MustLimit(spec).Algorithm; got != tidegate.SlidingWindow {
				t.Errorf("%s %d/s by sliding_window is counted by %s", c, events, got)
			}
		}
	}
}

// What can be shared how.
func TestConsistencySuits(t *testing.T) {
	buckets := []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.Quota}
	windows := []tidegate.Algorithm{tidegate.SubWindows, tidegate.SlidingWindow, tidegate.FixedWindow, tidegate.Quota}
	for a := tidegate.TokenBucket; a < tidegate.Deny; a++ {
		for c, want := range map[tidegate.Consistency]bool{
			tidegate.Strict: true, tidegate.Leased: slices.Contains(buckets, a), tidegate.Split: slices.Contains(buckets, a),
			tidegate.Eventual: slices.Contains(windows, a),
		} {
			if c.Suits(a) != want {
				t.Errorf("%s suits %s: %v", c, a, c.Suits(a))
			}
		}
	}
}
