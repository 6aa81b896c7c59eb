package queue

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

type everyone struct{ check tidegate.Check }

func (e everyone) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, e.check)
}

// Requests leave a queue whose limit counts by status, and some give their turn back
// after it began: nobody leaves less than a turn after another that stays charged.
func TestTurnGivenBackByStatusIsUsedOnce(t *testing.T) {
	for _, takes := range []time.Duration{0, 50 * ms, 100 * ms, 150 * ms, 250 * ms, 450 * ms} {
		synctest.Test(t, func(t *testing.T) {
			limit := tidegate.MustLimit(tidegate.Spec{
				Name: "login", Events: 5, Period: time.Second, Burst: 50, Algorithm: tidegate.LeakyBucket,
				Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}}}},
			})
			gate := tidegate.NewGate(everyone{tidegate.Check{Key: "k", Limit: limit, Cost: 1, MaxWait: time.Minute}}, New(chain.Adapt(memory.New())))
			var all sync.WaitGroup
			var mu sync.Mutex
			var left []time.Duration // of those that stay charged
			start := time.Now()
			for i := range 40 {
				all.Go(func() {
					d, visit := gate.Enter(t.Context(), &tidegate.Request{})
					if !d.OK {
						return
					}
					at, status := time.Since(start), 401
					if i%3 == 1 {
						status = 200
					}
					time.Sleep(takes)
					_ = visit.End(tidegate.Outcome{Status: status})
					if status == 401 {
						mu.Lock()
						left = append(left, at)
						mu.Unlock()
					}
				})
				synctest.Wait()
				time.Sleep(time.Duration(i%7) * 37 * ms)
			}
			all.Wait()
			for i, a := range left {
				for _, b := range left[:i] {
					if (a - b).Abs() < 200*ms-time.Microsecond {
						t.Errorf("requests that take %s leave after %s and %s: want 200ms between them", takes, b, a)
					}
				}
			}
			if len(left) < 20 {
				t.Errorf("only %d left", len(left))
			}
		})
	}
}

// A request that waits in the queue longer than a bucket takes to refill, and then does not count,
// gives its place back like any other.
func TestTurnThatDoesNotCountIsGivenBack(t *testing.T) {
	f := func(algorithm tidegate.Algorithm, burst int64) {
		synctest.Test(t, func(t *testing.T) {
			limit := tidegate.MustLimit(tidegate.Spec{
				Name: "login", Events: 1, Period: time.Second, Burst: burst, Algorithm: algorithm,
				Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}}}},
			})
			inner := memory.New()
			check := tidegate.Check{Key: "k", Limit: limit, Cost: 1, MaxWait: time.Minute}
			gate := tidegate.NewGate(everyone{check}, New(chain.Adapt(inner)))
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					_, visit := gate.Enter(t.Context(), &tidegate.Request{})
					status := 401
					if i == 9 { // the last in the queue
						status = 200
					}
					_ = visit.End(tidegate.Outcome{Status: status})
				})
				synctest.Wait()
			}
			all.Wait() // nine seconds later
			check.MaxWait = 0
			if d, err := inner.Take(t.Context(), []tidegate.Check{check}, 1); err != nil || !d.OK {
				t.Errorf("%s: %+v, %v: want the place of the last one back", algorithm, d, err)
			}
		})
	}
	f(tidegate.TokenBucket, 1)
	f(tidegate.LeakyBucket, 20)
}
