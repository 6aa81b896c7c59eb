package rules

import (
	"testing"
	"time"
)

// A hard bucket that is slowed down and gives way from then on admits no more than its ceiling in any time, also while what was
// used before still counts: its counter is the ceiling's.
func TestHardBucketThatGivesWayIsHeldToItsCeiling(t *testing.T) {
	for _, over := range []string{"soft: 100%, max_time: 60s", "elastic: { while: cpu < 80%, up_to: 2x }"} {
		for _, pause := range []time.Duration{0, 60 * time.Second, 75 * time.Second} {
			d := newDesk(t, rulesOf("limits: { rate: 60/minute, algorithm: token_bucket, burst: 60 }"))
			d.reload(rulesOf("limits: { rate: 6/minute, algorithm: token_bucket, burst: 60 }, over: { " + over + " }"))
			var passed []time.Time
			for second := range 600 {
				if since := time.Duration(second) * time.Second; since < 61*time.Second || since > 61*time.Second+pause {
					for d.ask(as("GET /", "user", "ann")).OK {
						passed = append(passed, d.clock)
					}
				}
				d.wait(time.Second)
			}
			excess, worst := 1e-6, time.Duration(0)
			for i, from := range passed {
				for j := i; j < len(passed); j++ {
					took := passed[j].Sub(from)
					if more := float64(j-i+1) - 120 - 12*took.Minutes(); more > excess {
						excess, worst = more, took
					}
				}
			}
			if worst > 0 {
				t.Errorf("%s, pause of %s: %.1f more in %s than the ceiling admits", over, pause, excess, worst)
			}
		}
	}
}
