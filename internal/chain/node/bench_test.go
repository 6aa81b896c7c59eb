package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

// ample is a limit that nobody here uses up.
var ample = tidegate.MustLimit(tidegate.Spec{Name: "ample", Scope: "user", Events: 1_000_000, Burst: 200_000_000, Period: time.Second, Algorithm: tidegate.TokenBucket})

// callers of a benchmark, all at once.
const callers = 256

// ask has callers ask s until b has enough, each for the keys that it is given, under a
// context that could end.
func ask(b *testing.B, s tidegate.Store, l *tidegate.Limit, keys []string) {
	b.SetParallelism((callers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		checks := make([]tidegate.Check, 1)
		for pb.Next() {
			checks[0] = tidegate.Check{Key: keys[rand.IntN(len(keys))], Limit: l, Cost: 1}
			if _, err := s.Take(ctx, checks, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
}

func openRedis(b *testing.B) tidegate.Store {
	inner, err := redis.Open(redis.Config{Addrs: []string{testdep.Redis(b).Socket}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = inner.Close() })
	if err := inner.Ping(context.Background()); err != nil {
		b.Fatal(err)
	}
	return inner
}

// BenchmarkHotKey is many callers on one key; plain has a call for each of them.
func BenchmarkHotKey(b *testing.B) {
	inner := openRedis(b)
	b.Run("plain", func(b *testing.B) { ask(b, inner, ample, []string{"all"}) })
	b.Run("node", func(b *testing.B) {
		s := open(b, inner, Options{Deadline: time.Second})
		ask(b, s, ample, []string{"all"})
		b.ReportMetric(float64(s.Health().Calls)/float64(b.N), "calls/op")
	})
}

// BenchmarkManyKeys is what a call of its own costs where it spares nothing.
func BenchmarkManyKeys(b *testing.B) {
	inner := openRedis(b)
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("user", i)
	}
	b.Run("plain", func(b *testing.B) { ask(b, inner, ample, keys) })
	b.Run("node", func(b *testing.B) { ask(b, open(b, inner, Options{Deadline: time.Second}), ample, keys) })
}

// BenchmarkDenied is many callers on one key that was refused.
func BenchmarkDenied(b *testing.B) {
	s := open(b, openRedis(b), Options{Deadline: time.Second})
	ask(b, s, tidegate.MustLimit(tidegate.Spec{Name: "one", Scope: "user", Events: 1, Period: time.Hour, Algorithm: tidegate.TokenBucket}), []string{"all"})
	b.ReportMetric(float64(s.Health().Calls)/float64(b.N), "calls/op")
}
