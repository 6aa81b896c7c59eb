package telemetry

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// BenchmarkDecided is of usual decisions, with lists of offenders, as fast as they can be made.
func BenchmarkDecided(b *testing.B) {
	for _, rules := range []int{1, 3, 8} {
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			m := New(prometheus.NewRegistry(), "memory")
			lists := offenders.New(offenders.Options{})
			defer lists.Close()
			m.Tell(lists)
			var checks []tidegate.Check
			for i := range rules {
				checks = append(checks, tidegate.Check{Key: "user-1", Limit: limitOfRule(fmt.Sprint("rule-", i)), Cost: 1})
			}
			d := tidegate.Decision{OK: true, Limit: checks[0].Limit, Granted: 1, Remaining: 10}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.Observe(nil, checks, d)
				}
			})
		})
	}
}
