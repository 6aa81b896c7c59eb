package node

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// BenchmarkTake is what a Node adds to a store that answers at once.
func BenchmarkTake(b *testing.B) {
	free := tidegate.MustLimit(tidegate.Spec{Name: "free", Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount})
	spent := tidegate.MustLimit(tidegate.Spec{Name: "spent", Algorithm: tidegate.TokenBucket, Events: 1, Period: time.Hour})
	request, cancel := context.WithCancel(context.WithValue(context.Background(), free, 1))
	defer cancel()
	stores := []struct {
		name  string
		store tidegate.Store
	}{
		{"memory", memory.New()},
		{"node", newNode(memory.New(), Options{Deadline: time.Second})},
	}
	for _, ctx := range []struct {
		name string
		ctx  context.Context
	}{{"background", context.Background()}, {"request", request}} {
		for _, l := range []*tidegate.Limit{free, spent} {
			for _, s := range stores {
				b.Run(l.Name+"/"+ctx.name+"/"+s.name, func(b *testing.B) {
					b.ReportAllocs()
					b.RunParallel(func(pb *testing.PB) {
						checks := []tidegate.Check{{Key: "user:12345678", Limit: l, Cost: 1}}
						for pb.Next() {
							if _, err := s.store.Take(ctx.ctx, checks, 1); err != nil {
								b.Fatal(err)
							}
						}
					})
				})
			}
		}
	}
}

// BenchmarkDegraded is what an answer costs while the circuit is open.
func BenchmarkDegraded(b *testing.B) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "free", Algorithm: tidegate.TokenBucket, Events: 1_000_000, Period: time.Second, Burst: tidegate.MaxCount})
	g := newNode(&faulty{fault: broken}, Options{Deadline: patient, Instances: func() int { return 3 }})
	defer g.Close()
	checks := []tidegate.Check{{Key: "user:12345678", Limit: l, Cost: 1}}
	for range DefaultFailures {
		_, _ = g.Take(b.Context(), checks, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = g.Take(b.Context(), checks, 1)
	}
}
