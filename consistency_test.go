package tidegate_test

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Where no algorithm is written, leased and split mean a token bucket; one that is written
// stays, and says whether it suits.
func TestConsistencyChoosesTheAlgorithm(t *testing.T) {
	for _, c := range []tidegate.Consistency{tidegate.Strict, tidegate.Leased, tidegate.Split} {
		for _, events := range []int64{1, 64, 65, 10000} {
			spec := tidegate.Spec{
				Name: "api", Events: events, Period: time.Second,
				Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: c}},
			}
			want := tidegate.TokenBucket
			switch {
			case c == tidegate.Strict && events <= tidegate.AutoLogEvents:
				want = tidegate.SlidingLog
			case c == tidegate.Strict:
				want = tidegate.SubWindows
			}
			if got := tidegate.MustLimit(spec).Algorithm; got != want || !c.Suits(got) {
				t.Errorf("%s %d/s is counted by %s, suits %v; want %s", c, events, got, c.Suits(got), want)
			}
			spec.Algorithm = tidegate.SlidingWindow
			if got := tidegate.MustLimit(spec).Algorithm; got != tidegate.SlidingWindow || c.Suits(got) != (c == tidegate.Strict) {
				t.Errorf("%s %d/s by sliding_window is counted by %s, suits %v", c, events, got, c.Suits(got))
			}
		}
	}
}
