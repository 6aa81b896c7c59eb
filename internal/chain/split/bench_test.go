package split

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// BenchmarkTake is a decision by a share beside the same one by a memory store.
func BenchmarkTake(b *testing.B) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second},
		{Algorithm: tidegate.FixedWindow, Events: 100_000_000, Period: time.Hour},
	} {
		l := limitOf(spec)
		store := memory.New()
		for name, s := range map[string]tidegate.Store{
			"memory":     chain.Adapt(store),
			"split of 1": New(chain.Adapt(store), Options{}),
			"split of 5": New(chain.Adapt(store), Options{Members: func() (int, int) { return 5, 2 }}),
		} {
			b.Run(spec.Algorithm.String()+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				checks := []tidegate.Check{{Key: "ann", Limit: l, Cost: 1}}
				for b.Loop() {
					if _, err := s.Take(ctx, checks, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
