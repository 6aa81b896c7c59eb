package deferq

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Kept requests leave in their order, by what each algorithm admits in any time, and none stays
// behind: 40 of one user under 4 in 2 s, while another user's leave beside them.
func TestOutflowByAlgorithm(t *testing.T) {
	const events, period, orders = 4, 2 * time.Second, 40
	most := map[string]int{ // in any period: two windows may meet within it, or a burst and what comes back
		"token_bucket": 2 * events, "fixed_window": 2 * events, "sliding_log": events,
		"sub_windows": 2 * events, "sub_windows, ceiling: true": events, "sliding_window": 2 * events,
	}
	for algorithm, most := range most {
		t.Run(algorithm, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := fmt.Sprintf("{ rate: %d/2s, algorithm: %s }", events, algorithm)
				b := newBench(t, strings.Replace(testRules, "2/second", limit, 1))
				defer b.close()
				time.Sleep(700 * time.Millisecond) // not at the edge of a window
				start := time.Now()
				b.accept("ann", 0, orders)
				b.accept("bob", 0, events)
				time.Sleep(orders / events * period * 3 / 2)
				var times []time.Time
				var bodies []string
				for _, a := range b.arrivals() {
					if a.key == "ann" {
						times, bodies = append(times, a.at), append(bodies, a.body)
					}
				}
				for i := range times {
					if bodies[i] != fmt.Sprint(i) {
						t.Fatalf("they came as %v", bodies)
					}
					in := slices.IndexFunc(times[i:], func(at time.Time) bool { return at.Sub(times[i]) >= period })
					if in > most {
						t.Errorf("%d within %s of %s, want at most %d", in, period, times[i].Sub(start), most)
					}
				}
				if len(times) != orders {
					t.Errorf("%d of %d are sent after %s", len(times), orders, time.Since(start))
				}
			})
		})
	}
}
