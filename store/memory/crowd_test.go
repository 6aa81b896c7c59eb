package memory

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// Many at once at the memory bound, by every algorithm, while pages go from slots to
// records and back, tables come and go and snapshots are written: nobody who is
// exhausted is admitted, and the bound holds.
func TestCrowdAtTheBound(t *testing.T) {
	const blocked, workers = 20, 4
	maxBytes, keys := int64(512<<10), 30_000
	if raceEnabled {
		maxBytes, keys = 160<<10, 6_000
	}
	s := Open(Config{MaxBytes: maxBytes})
	var lasting []*tidegate.Limit
	for i, a := range stateful {
		lasting = append(lasting, tidegate.MustLimit(specOf(fmt.Sprint("lasting", i), a, 5, 40*24*time.Hour, tidegate.EvictLeast)))
		for k := range blocked {
			for range 6 {
				ask1(t, s, lasting[i], fmt.Sprint(k))
			}
		}
	}
	var crowd sync.WaitGroup
	done := make(chan struct{})
	for w := range workers {
		crowd.Go(func() {
			for k := range keys {
				a := stateful[k*workers/keys*2%len(stateful)] // a few thousand of one, then of another
				spec := specOf(fmt.Sprint("flooded", w%2, a), a, 5, 24*time.Hour, tidegate.EvictLeast)
				if k%1000 == 999 {
					spec.Name = fmt.Sprint("once", w, k)
				}
				ask1(t, s, tidegate.MustLimit(spec), fmt.Sprint(w, "-", k))
				if l := lasting[k%len(lasting)]; l.Algorithm != tidegate.Quota && ask1(t, s, l, fmt.Sprint(k%blocked)).OK && l.Algorithm != tidegate.TokenBucket {
					t.Errorf("%s: exhausted key %d was admitted; %+v", l, k%blocked, s.LimitStats(l))
					return
				}
			}
		})
	}
	var beside sync.WaitGroup
	beside.Go(func() {
		file := filepath.Join(t.TempDir(), "snapshot")
		for {
			select {
			case <-done:
				return
			default:
				if err := s.Snapshot(file); err != nil {
					t.Error(err)
				}
				// What several take at once may be over for a moment, by a page each.
				if st := s.Stats(); st.Bytes > maxBytes+workers*pageBytes {
					t.Errorf("%d bytes, the bound is %d", st.Bytes, maxBytes)
					return
				}
			}
		}
	})
	crowd.Wait()
	close(done)
	beside.Wait()
	if st := s.Stats(); st.Forgotten == 0 {
		t.Errorf("%+v: the crowd was not large enough", st)
	}
}
