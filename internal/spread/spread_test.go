package spread

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestCounter(t *testing.T) {
	var c Counter
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				before := c.Load()
				c.Inc()
				if after := c.Load(); after <= before {
					t.Errorf("%d, and %d after one was added", before, after)
				}
			}
		})
	}
	all.Wait()
	if got := c.Load(); got != 8000 {
		t.Errorf("got %d, want 8000", got)
	}
}

// BenchmarkInc shows what it is for.
func BenchmarkInc(b *testing.B) {
	var c Counter
	var word atomic.Uint64
	b.Run("spread", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Inc()
			}
		})
	})
	b.Run("one word", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				word.Add(1)
			}
		})
	})
}
