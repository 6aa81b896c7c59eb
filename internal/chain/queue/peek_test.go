package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// A request that costs nothing looks at a queue and does not stand in it: it is told at once when its turn would come,
// or that the queue is full.
func TestPeeksDoNotWait(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.LeakyBucket, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		for _, sent := range []int{0, 1, 5, 15, 40} { // of 10 a second, with 20 places
			synctest.Test(t, func(t *testing.T) {
				s := New(chain.Adapt(memory.New()))
				c := crowd{store: s, start: time.Now()}
				check := checkOf(dropping(a, 10, 20, time.Minute))
				other := tidegate.Check{Key: "k", Limit: tidegate.MustLimit(tidegate.Spec{Name: "other", Events: 1000, Period: time.Second})}
				for i := range sent {
					c.send(t.Context(), i, check)
				}
				peek := check
				peek.Cost = 0
				waiting := s.Waiting()
				for _, checks := range [][]tidegate.Check{{peek}, {other, peek}} {
					for range 3 {
						at := time.Now()
						d, err := s.Take(t.Context(), checks, 1)
						if took := time.Since(at); err != nil || took > 0 || d.Queued {
							t.Errorf("%s, %d sent: a peek took %s: %+v, %v", a, sent, took, d, err)
						}
					}
				}
				if now := s.Waiting(); now != waiting {
					t.Errorf("%s, %d sent: %d wait after peeks, %d before", a, sent, now, waiting)
				}
				c.Wait()
			})
		}
	}
}
