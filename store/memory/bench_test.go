package memory

import (
	"context"
	"fmt"
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
