package eventual

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// A request of a class that has to leave something of a log that counts rejected requests counts there up to that,
// also if it is refused by the counts of this instance.
func TestRejectedRequestsCountUpToTheFloor(t *testing.T) {
	for _, a := range algorithms {
		for _, cost := range []int64{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				below := memory.New()
				s := New(chain.Adapt(below), Options{})
				defer s.Close()
				l := limitOf(a, 3, time.Hour)
				log := tidegate.MustLimit(tidegate.Spec{Name: "log", Algorithm: tidegate.SlidingLog, Events: 20, Period: 100 * time.Hour, CountRejected: true})
				refused := 0
				for range 40 {
					d, err := s.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: l, Cost: 1}, {Key: "k", Limit: log, Cost: cost, Floor: 10}}, 1)
					if err != nil {
						t.Fatal(err)
					}
					if !d.OK {
						refused++
					}
				}
				d, err := below.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: log}}, 1)
				if err != nil || d.Remaining != 10 || refused != 37 {
					t.Errorf("%s, cost %d: %d refused, %d left of the log, want 37 and the floor of 10; %v", l, cost, refused, d.Remaining, err)
				}
			})
		}
	}
}
