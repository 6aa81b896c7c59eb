package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Every key admits exactly its limit, however inserts, updates, rebuilds,
// splits and sweeps interleave.
func TestExactUnderGrowth(t *testing.T) {
	const keys, rounds, workers = 2000, 2, 4 // 8 asks a key for a limit of 5
	for _, l := range everyAlgorithm() {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			s := Open(Config{MaxBytes: 64 << 20})
			admitted := make([]atomic.Int32, keys)
			done := make(chan struct{})
			var sweeping, callers sync.WaitGroup
			sweeping.Go(func() {
				for n := uint64(0); ; n++ {
					select {
					case <-done:
						return
					default:
						for _, table := range s.allTables() {
							s.shrink(table, n, s.clock.now(), dropIdle)
						}
					}
				}
			})
			for w := range workers {
				callers.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(w), 1))
					for range rounds {
						for _, k := range rng.Perm(keys) {
							if ask1(t, s, l, fmt.Sprint("key", k)).OK {
								admitted[k].Add(1)
							}
						}
					}
				})
			}
			callers.Wait()
			close(done)
			sweeping.Wait()
			for k := range admitted {
				if n := admitted[k].Load(); n != 5 {
					t.Fatalf("key%d was admitted %d times, want 5", k, n)
				}
			}
			if st := s.Stats(); st.Keys != keys || st.Evicted+st.Forgotten+st.RefusedFull != 0 {
				t.Errorf("%+v: want %d keys and nothing lost", st, keys)
			}
		})
	}
}

// ask1 asks for one event now, or in the far future of a queue.
func ask1(t *testing.T, s *Store, l *tidegate.Limit, key string) tidegate.Decision {
	t.Helper()
	c := tidegate.Check{Key: key, Limit: l, Cost: 1}
	if l.Algorithm == tidegate.LeakyBucket {
		c.MaxWait = farAhead
	}
	d, err := s.Take(context.Background(), []tidegate.Check{c}, 1)
	if err != nil {
		t.Error(err)
	}
	return d
}

// The load of a table stays between what one chunk more or less makes of it,
// whatever its size: bytes per key have no peaks.
func TestBytesPerKey(t *testing.T) {
	testdep.SkipUnderRace(t)
	const most = 20_000
	for _, l := range everyAlgorithm() {
		each := int64(40)
		if kinds[l.Algorithm] == runs {
			each = 54 // segments are smaller, so that they are half empty when they split
		}
		s := New()
		s.hash = expandHashKey(1, 2) // of 1,800 at random the worst took 39.5 bytes, so that a rare one takes more than 40
		for n := 1; n <= most; n++ {
			ask1(t, s, l, fmt.Sprint(n))
			if n < 2000 || n%250 != 0 {
				continue
			}
			if st := s.Stats(); st.Bytes > each*int64(n) {
				t.Errorf("%s: %d keys take %d bytes, %.1f each", l.Algorithm, n, st.Bytes, float64(st.Bytes)/float64(n))
				break
			}
		}
	}
}

// What nobody asks about any more gives its memory back while others come.
func TestIdleTablesShrink(t *testing.T) {
	testdep.SkipUnderRace(t)
	s, clock := openAt(0)
	old := tidegate.MustLimit(tidegate.Spec{Name: "old", Events: 1, Period: minute, Algorithm: tidegate.TokenBucket})
	for k := range 10_000 {
		ask1(t, s, old, fmt.Sprint(k))
	}
	full := s.LimitStats(old)
	clock.pass(2 * minute)
	young := tidegate.MustLimit(tidegate.Spec{Name: "young", Events: 1, Period: 1000 * minute, Algorithm: tidegate.TokenBucket})
	for k := range 30_000 {
		ask1(t, s, young, fmt.Sprint(k))
	}
	if st := s.LimitStats(old); st.Bytes > full.Bytes/4 {
		t.Errorf("10,000 idle keys still hold %d of %d bytes", st.Bytes, full.Bytes)
	}
}
