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

// Several at once ask for the same few keys by the short way of every algorithm, while segments
// are rebuilt: each key admits exactly its limit, and tells nobody else what it has told one.
func TestExactUnderContention(t *testing.T) {
	const events, keys, workers, asks = 300, 3, 4, 120 // of the log, more than a page
	for _, a := range bounded {
		t.Run(a.String(), func(t *testing.T) {
			var reads atomic.Int64
			s := Open(Config{Now: func() time.Time { return noon.Add(time.Duration(reads.Add(1)) * time.Microsecond) }})
			l := limitOf(a, events, tidegate.EvictLeast)
			var told [keys][events]atomic.Bool
			var admitted [keys]atomic.Int64
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
			for range workers {
				callers.Go(func() {
					for i := range keys * asks {
						k := i / 7 % keys // a key is hot for a while
						d, err := s.TakeOne(context.Background(), fmt.Sprint(k), l, 1, 0)
						switch {
						case err != nil || d.OK != (d.Granted == 1) || d.OK == (d.RetryAfter > 0):
							t.Errorf("%+v, %v", d, err)
						case d.OK && told[k][d.Remaining].Swap(true):
							t.Errorf("two were told that %d are left of key %d", d.Remaining, k)
						case d.OK:
							admitted[k].Add(1)
						}
					}
				})
			}
			callers.Wait()
			close(done)
			sweeping.Wait()
			for k := range keys {
				if n := admitted[k].Load(); n != events {
					t.Errorf("key %d was admitted %d times, want %d", k, n, events)
				}
			}
		})
	}
}
