package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func BenchmarkTake(b *testing.B) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount},
		{Algorithm: tidegate.FixedWindow, Events: tidegate.MaxCount, Period: time.Hour},
		{Algorithm: tidegate.SlidingWindow, Events: tidegate.MaxCount, Period: time.Hour},
		{Algorithm: tidegate.SlidingLog, Events: tidegate.MaxLogEvents, Period: time.Millisecond},
		{Algorithm: tidegate.SubWindows, Events: tidegate.MaxCount, Period: time.Hour},
	} {
		b.Run(spec.Algorithm.String(), func(b *testing.B) {
			s := New()
			checks := []tidegate.Check{{Limit: tidegate.MustLimit(spec), Cost: 1, Key: "user:12345678"}}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = s.Take(context.Background(), checks, 1)
			}
		})
	}
}

func BenchmarkAllow(b *testing.B) {
	lim := tidegate.New(New(), tidegate.MustLimit(tidegate.Spec{
		Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount,
	}))
	b.ReportAllocs()
	for b.Loop() {
		lim.Allow(context.Background(), "user:12345678")
	}
}

func BenchmarkVectorOfEight(b *testing.B) {
	l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount})
	s := New()
	checks := make([]tidegate.Check, 8)
	for i := range checks {
		checks[i] = tidegate.Check{Limit: l, Cost: 1, Key: fmt.Sprint("user:", 10_000+i)}
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Take(context.Background(), checks, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(8*b.N), "ns/check")
}

// BenchmarkUniform asks for random ones of a million keys, alone and by eight.
func BenchmarkUniform(b *testing.B) {
	const keys, asked = 1_000_000, 1 << 19
	l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 100, Period: time.Hour, Burst: 1000})
	s := New()
	one := []tidegate.Check{{Limit: l, Cost: 1}}
	for i := range keys {
		one[0].Key = fmt.Sprintf("user:%08d", i)
		_, _ = s.Take(context.Background(), one, 1)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	drawn := make([]string, asked) // as if each had just come with a request
	for i := range drawn {
		drawn[i] = fmt.Sprintf("user:%08d", rng.IntN(keys))
	}
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			checks := make([]tidegate.Check, n)
			for i := range checks {
				checks[i] = tidegate.Check{Limit: l, Cost: 1}
			}
			at := 0
			for b.Loop() {
				for i := range checks {
					checks[i].Key = drawn[(at+i)%asked]
				}
				at += n
				_, _ = s.Take(context.Background(), checks, 1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/check")
		})
	}
}
