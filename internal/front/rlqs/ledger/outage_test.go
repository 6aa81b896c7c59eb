package ledger_test

import (
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/rlqs/ledger"
)

// While the shared bucket does not answer, every instance divides its share of it. When it is back, Envoys soon
// have what they had before, and nothing is above the bucket at any time.
func TestOutage(t *testing.T) {
	testdep.SkipUnderRace(t)
	long := ledger.Limit{Events: 1000, Period: time.Second, Burst: 6000}
	slow := ledger.Times{TTL: 2 * time.Second, Delivery: 500 * time.Millisecond}
	for i, ledgers := range []int{1, 2, 3, 5} {
		for j, lasts := range []time.Duration{time.Second, 8 * time.Second, 30 * time.Second} {
			if thin > 1 && i%3 != j {
				continue
			}
			t.Run(instances(ledgers)+"/"+lasts.String(), func(t *testing.T) {
				for _, with := range []struct {
					ledger.Limit
					ledger.Times
				}{{thousand, short}, {long, slow}} {
					before, after := 0.0, 0.0
					for seed := range uint64(10) {
						b, a := outage(t, newSimulation(seed, with.Limit, with.Times, ledgers, true), lasts)
						before, after = before+b/10, after+a/10
					}
					t.Logf("%v: %.0f per second before, %.0f after", with.Times, before, after)
					if after < before*0.95 {
						t.Errorf("%v: %.0f per second before, %.0f after", with.Times, before, after)
					}
				}
			})
		}
	}
}

// outage returns what is admitted per second before an outage and right after it.
func outage(t *testing.T, w *simulation, lasts time.Duration) (before, after float64) {
	t.Helper()
	for _, perSecond := range []float64{40, 120, 300, 600, 1200} {
		w.add(constant(perSecond))
	}
	out := w.times.Out()
	w.run(30*out, nil)
	before = rate(w.admitted, w.now-5*out, w.now)
	w.cutOff()
	w.run(w.now+lasts, nil)
	w.rejoin()
	w.run(w.now+4*out, nil)
	if n, most := w.above(); n > 0 {
		t.Errorf("%d of %d are above the bucket, by up to %.1f", n, len(w.admitted), most)
	}
	return before, rate(w.admitted, w.now-4*out, w.now)
}
