package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// BenchmarkTake asks about 10,000 keys from many goroutines, and also tells the time that
// the script takes in Redis, which is what bounds a fleet.
func BenchmarkTake(b *testing.B) {
	server := testdep.Redis(b)
	f := func(name string, specs ...tidegate.Spec) {
		b.Run(name, func(b *testing.B) {
			s := openTest(b, Config{Addrs: []string{server.Socket}})
			var limits []*tidegate.Limit
			for _, spec := range specs {
				spec.Name = "bench"
				if spec.Scope == "" {
					spec.Scope = "user"
				}
				if spec.Period == 0 {
					spec.Period = time.Minute
				}
				limits = append(limits, tidegate.MustLimit(spec))
			}
			benchTake(b, s, limits)
			b.ReportMetric(perCall(b, server), "redis-µs/op")
		})
	}
	f("token_bucket", tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1000})
	f("leaky_bucket", tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: 1000, Burst: 100})
	f("fixed_window", tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 1000})
	f("sliding_window", tidegate.Spec{Algorithm: tidegate.SlidingWindow, Events: 1000})
	f("sub_windows", tidegate.Spec{Algorithm: tidegate.SubWindows, Events: 1000})
	f("sliding_log", tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 64})
	f("two limits", tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1000}, tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 10000, Period: time.Hour})
	f("three subjects", tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1000},
		tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1000, Scope: "ip"}, tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Scope: "everyone"})
}

func benchTake(b *testing.B, s *Store, limits []*tidegate.Limit) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	if err := s.Ping(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		checks := make([]tidegate.Check, len(limits))
		for pb.Next() {
			key := keys[rand.IntN(len(keys))]
			for i, l := range limits {
				checks[i] = tidegate.Check{Key: key, Limit: l, Cost: 1}
			}
			if _, err := s.Take(context.Background(), checks, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
}

var usecPerCall = regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`)

// perCall is the µs that scripts have taken since it was last asked.
func perCall(b *testing.B, server *testdep.RedisServer) float64 {
	found := usecPerCall.FindStringSubmatch(server.Do("INFO", "commandstats"))
	server.Do("CONFIG", "RESETSTAT")
	if found == nil {
		return 0
	}
	us, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return us
}
