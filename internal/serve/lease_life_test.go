package serve

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/lease"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// What lint and explain say of leases is what the layer that takes them does. They do not know
// each other, and meet here.
func TestLeasesAreAsExplained(t *testing.T) {
	leased := 0
	for _, spec := range []tidegate.Spec{
		{Period: time.Second, Algorithm: tidegate.TokenBucket},
		{Period: time.Minute, Algorithm: tidegate.TokenBucket},
		{Period: 7 * time.Millisecond, Algorithm: tidegate.TokenBucket},
		{Period: 39 * time.Millisecond, Algorithm: tidegate.FixedWindow},
		{Period: 40 * time.Millisecond, Algorithm: tidegate.FixedWindow},
		{Period: time.Second, Algorithm: tidegate.FixedWindow},
		{Period: time.Hour, Algorithm: tidegate.FixedWindow},
		{Calendar: tidegate.Day, Algorithm: tidegate.Quota},
		{Calendar: tidegate.Week, Algorithm: tidegate.Quota},
		{Calendar: tidegate.Month, Algorithm: tidegate.Quota},
		{Calendar: tidegate.Year, Algorithm: tidegate.Quota},
	} {
		for _, spec.Events = range []int64{1, 3, 19, 20, 21, 100, 999, 1000, 20_000, 5_184_000, 53_568_000, 100_000_000} {
			for _, burst := range []int64{0, 1, 2, 39, 40, 41, 79, 80, 81, 1000, 5000, 1_000_000} {
				if spec.Burst = burst; spec.Algorithm != tidegate.TokenBucket {
					spec.Burst = 0
				}
				l, err := tidegate.NewLimit(spec)
				if err != nil {
					continue // too fast, or years to refill
				}
				for _, instances := range []int{0, 1, 2, 5, 20, 1000} {
					life := lease.Life(l, instances)
					told, err := rulefile.LeaseOf(l, instances)
					if told.Life != life || (err == nil) != (life > 0) {
						t.Fatalf("%s on %d instances: told %s, %v; leases last %s", l, instances, told.Life, err, life)
					}
					if life > 0 {
						leased++
					}
				}
			}
		}
	}
	if leased < 100 {
		t.Errorf("only %d are leased: the test has lost its point", leased)
	}
}
