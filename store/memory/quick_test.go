package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

func TestExactUnderGrowth(t *testing.T) {
	for _, al := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota} {
		t.Run(al.String(), func(t *testing.T) {
			s := New()
			sp := tidegate.Spec{Events: 20, Period: 200 * 24 * time.Hour, Algorithm: al}
			if al == tidegate.Quota {
				sp.Period = 0
				sp.Calendar = tidegate.Year
			}
			l := tidegate.MustLimit(sp)
			const keys = 20000
			adm := make([]atomic.Int32, keys)
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					c := []tidegate.Check{{Limit: l, Cost: 1}}
					for r := range 7 {
						for k := range keys {
							k = (k*7919 + g*13 + r) % keys
							c[0].Key = fmt.Sprint("k", k)
							d, err := s.Take(context.Background(), c, 1)
							if err != nil {
								t.Error(err)
								return
							}
							if d.OK {
								adm[k].Add(1)
							}
						}
					}
				}()
			}
			wg.Wait()
			bad := 0
			for i := range adm {
				if adm[i].Load() != 20 {
					bad++
				}
			}
			st := s.Stats()
			t.Logf("%+v bytes/key %.1f", st, float64(st.Bytes)/float64(st.Keys))
			if bad > 0 || st.Keys != keys {
				t.Fatalf("%d bad keys of %d", bad, st.Keys)
			}
		})
	}
}

func BenchmarkTake(b *testing.B) {
	for _, al := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		ev := int64(1_000_000)
		if al == tidegate.SlidingLog {
			ev = 10000
		}
		sp := tidegate.Spec{Events: ev, Period: time.Second, Algorithm: al}
		if al == tidegate.TokenBucket {
			sp.Burst = 200_000_000
		}
		l := tidegate.MustLimit(sp)
		b.Run(al.String(), func(b *testing.B) {
			s := New()
			c := []tidegate.Check{{Limit: l, Cost: 1, Key: "user:12345678"}}
			b.ReportAllocs()
			for b.Loop() {
				s.Take(context.Background(), c, 1)
			}
		})
	}
}

func BenchmarkAllow(b *testing.B) {
	lim := tidegate.New(New(), tidegate.MustLimit(tidegate.Spec{Events: 1000000, Burst: 100000000, Period: time.Second, Algorithm: tidegate.TokenBucket}))
	b.ReportAllocs()
	for b.Loop() {
		lim.Allow(context.Background(), "user:12345678")
	}
}

func BenchmarkUniform(b *testing.B) {
	l := tidegate.MustLimit(tidegate.Spec{Events: 3600, Burst: 100_000, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	keys := make([]string, 1<<20)
	for i := range keys {
		keys[i] = fmt.Sprint("user:", i)
	}
	s := New()
	c := []tidegate.Check{{Limit: l, Cost: 1}}
	for _, k := range keys {
		c[0].Key = k
		s.Take(context.Background(), c, 1)
	}
	b.Run("1", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i = i*1664525 + 1013904223
			c[0].Key = keys[i>>3&(1<<20-1)]
			s.Take(context.Background(), c, 1)
		}
	})
	b.Run("8", func(b *testing.B) {
		i := 0
		c := make([]tidegate.Check, 8)
		for j := range c {
			c[j] = tidegate.Check{Limit: l, Cost: 1}
		}
		b.ReportAllocs()
		for b.Loop() {
			for j := range c {
				i = i*1664525 + 1013904223
				c[j].Key = keys[i>>3&(1<<20-1)]
			}
			s.Take(context.Background(), c, 1)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8, "ns/check")
	})
}

func BenchmarkHotMulti(b *testing.B) {
	l := tidegate.MustLimit(tidegate.Spec{Events: 1000000, Burst: 200_000_000, Period: time.Second, Algorithm: tidegate.TokenBucket})
	s := New()
	c := make([]tidegate.Check, 8)
	for j := range c {
		c[j] = tidegate.Check{Limit: l, Cost: 1, Key: fmt.Sprint("user:", 10000+j)}
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Take(context.Background(), c, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8, "ns/check")
}
