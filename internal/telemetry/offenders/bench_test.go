package offenders

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// BenchmarkObserve is of decisions about one rule, as fast as they can be made.
func BenchmarkObserve(b *testing.B) {
	keys := make([]string, 1<<16)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, 1<<20)
	for i := range keys {
		keys[i] = fmt.Sprintf("user-%d", zipf.Uint64())
	}
	f := func(name string, ok bool) {
		b.Run(name, func(b *testing.B) {
			of := New(Options{})
			defer of.Close()
			b.ReportAllocs()
			var goroutines atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				l := limitsOf[0]
				i := int(goroutines.Add(1)) * 1000
				for pb.Next() {
					i++
					checks, d := decidedOnStack(l, keys[i%len(keys)], ok)
					of.Decided(checks[:], &d)
				}
			})
		})
	}
	f("admitted", true)
	f("refused", false)
}

// BenchmarkExact is of decisions that are all looked at, and cost the more for it.
func BenchmarkExact(b *testing.B) {
	for _, keys := range []int{100, 100_000} {
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprintf("user-%d", i)
		}
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			of := New(Options{})
			defer of.Close()
			r := of.get(limitsOf[0].Name)
			b.ReportAllocs()
			for i := range b.N {
				r.classes[common].mask.Store(0)
				checks, d := decidedOnStack(limitsOf[0], names[i%len(names)], true)
				of.Decided(checks[:], &d)
			}
		})
	}
}
