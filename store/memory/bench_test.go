package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

var benchSpecs = []tidegate.Spec{
	{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount},
	{Algorithm: tidegate.FixedWindow, Events: tidegate.MaxCount, Period: time.Hour},
	{Algorithm: tidegate.SlidingWindow, Events: tidegate.MaxCount, Period: time.Hour},
	{Algorithm: tidegate.SlidingLog, Events: tidegate.MaxLogEvents, Period: time.Millisecond},
	{Algorithm: tidegate.SubWindows, Events: tidegate.MaxCount, Period: time.Hour},
}

func BenchmarkTake(b *testing.B) {
	for _, spec := range benchSpecs {
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

// BenchmarkContended has all processors ask for one key; see -cpu.
func BenchmarkContended(b *testing.B) {
	for _, spec := range benchSpecs {
		b.Run(spec.Algorithm.String(), func(b *testing.B) {
			s := New()
			l := tidegate.MustLimit(spec)
			b.RunParallel(func(pb *testing.PB) {
				checks := []tidegate.Check{{Limit: l, Cost: 1, Key: "user:12345678"}}
				for pb.Next() {
					_, _ = s.Take(context.Background(), checks, 1)
				}
			})
		})
	}
}

// BenchmarkLimits asks for one key of each of many limits in turn.
func BenchmarkLimits(b *testing.B) {
	for _, n := range []int{1, 256, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New()
			checks := make([][]tidegate.Check, n)
			for i := range checks {
				l := tidegate.MustLimit(tidegate.Spec{Name: fmt.Sprint("limit ", i), Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount})
				checks[i] = []tidegate.Check{{Limit: l, Cost: 1, Key: "user:12345678"}}
				_, _ = s.Take(context.Background(), checks[i], 1)
			}
			i := 0
			for b.Loop() {
				if i++; i == n {
					i = 0
				}
				_, _ = s.Take(context.Background(), checks[i], 1)
			}
		})
	}
}

// BenchmarkVector asks for several limits at once, and for one more that is used up.
func BenchmarkVector(b *testing.B) {
	for _, spec := range benchSpecs {
		for _, n := range []int{2, 3, 8, 9, 16} {
			for _, refused := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%d/refused=%v", spec.Algorithm, n, refused), func(b *testing.B) {
					s := New()
					checks := make([]tidegate.Check, n)
					for i := range checks {
						spec := spec
						if spec.Name = fmt.Sprint("limit ", i); refused && i == n-1 {
							spec.Events, spec.Period, spec.Burst = 1, time.Hour, 0
						}
						checks[i] = tidegate.Check{Limit: tidegate.MustLimit(spec), Cost: 1, Key: "user:12345678"}
					}
					b.ReportAllocs()
					for b.Loop() {
						_, _ = s.Take(context.Background(), checks, 1)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/check")
				})
			}
		}
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

// BenchmarkDefault asks for a key as often as its limit admits, then for a new one, by the algorithm of
// those who name none.
func BenchmarkDefault(b *testing.B) {
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%08d", i)
	}
	for _, events := range []int{60, 1000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			l := tidegate.MustLimit(tidegate.Spec{Events: int64(events), Period: time.Minute})
			s := Open(Config{MaxBytes: 8 << 30})
			checks := []tidegate.Check{{Limit: l, Cost: 1}}
			i := 0
			for b.Loop() {
				if i == len(keys)*events { // no key is left that has not used up its limit
					s, i = Open(Config{MaxBytes: 8 << 30}), 0
				}
				checks[0].Key = keys[i/events]
				i++
				_, _ = s.Take(context.Background(), checks, 1)
			}
		})
	}
}

// BenchmarkUniform asks for random ones of a million keys, alone and by eight.
func BenchmarkUniform(b *testing.B) {
	const keys, asked = 1_000_000, 1 << 19
	rng := rand.New(rand.NewPCG(1, 2))
	drawn := make([]string, asked) // as if each had just come with a request
	for i := range drawn {
		drawn[i] = fmt.Sprintf("user:%08d", rng.IntN(keys))
	}
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		spec := tidegate.Spec{Algorithm: a, Events: 100, Period: time.Hour}
		s := Open(Config{MaxBytes: 8 << 30})
		l := tidegate.MustLimit(spec)
		for i := range keys {
			_, _ = s.TakeOne(context.Background(), fmt.Sprintf("user:%08d", i), l, 1, 0)
		}
		for _, n := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d", a, n), func(b *testing.B) {
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
}
