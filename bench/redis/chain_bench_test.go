package main

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// BenchmarkChain is for profiles: Tidegate alone, under the load of one race.
func BenchmarkChain(b *testing.B) {
	ctx := context.Background()
	server, err := startRedis(ctx)
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(server.stop)
	f := func(name string, q quota, l *load) {
		b.Run(name, func(b *testing.B) {
			lim, err := chain("Tidegate", "chain", tidegate.Terms{}).open(server.Address, q)
			if err != nil {
				b.Fatal(err)
			}
			defer lim.close()
			l.drive(ctx, lim, 200*time.Millisecond)
			before, err := server.account(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var all tally
			for b.Loop() {
				t := l.drive(ctx, lim, 100*time.Millisecond)
				all.add(t)
				all.took, all.own = all.took+t.took, all.own+t.own
			}
			after, err := server.account(ctx)
			if err != nil {
				b.Fatal(err)
			}
			all.account = after.since(before)
			b.ReportMetric(all.rate(), "decisions/s")
			b.ReportMetric(all.micros(), "redis-µs")
			b.ReportMetric(all.ownMicros(), "own-µs")
			b.ReportMetric(all.perCall(), "per-call")
		})
	}
	many := uniform(makeKeys("user-", users))
	f("keys64", plenty, &load{callers: 64, drawn: many})
	f("keys1024", plenty, &load{callers: 1024, drawn: many})
	f("hot", huge, &load{callers: hotCallers, drawn: makeKeys("hot-", 1)})
	f("attack", plenty, attackLoad())
}
