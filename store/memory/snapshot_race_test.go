package memory

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// A process counts, writes snapshots meanwhile, and is replaced by one that restores the last of
// them, again and again: nothing that was counted before a snapshot began is missing, and nothing
// is there that was not counted.
func TestSnapshotWhileCounting(t *testing.T) {
	var limits []*tidegate.Limit
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingLog,
		tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: a.String(), Algorithm: a, Events: 10_000, Period: 10 * 24 * time.Hour}
		switch a {
		case tidegate.Quota:
			spec.Period, spec.Calendar = 0, tidegate.Year
		case tidegate.TokenBucket, tidegate.LeakyBucket:
			spec.Period, spec.Events, spec.Burst = time.Hour, 1, 2_000
		}
		limits = append(limits, tidegate.MustLimit(spec))
	}
	used := func(s *Store, l *tidegate.Limit) int64 {
		d, err := s.Take(context.Background(), []tidegate.Check{{Key: "key", Limit: l, MaxWait: farAhead}}, 1) // a cost of 0 only asks
		if err != nil {
			t.Fatal(err)
		}
		return l.Capacity() - d.Remaining
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	s := Open(Config{})
	sent := make([]int64, len(limits))
	for round := range 150 {
		certain := make([]int64, len(limits))
		var all sync.WaitGroup
		var begun sync.WaitGroup
		begun.Add(len(limits))
		for i, l := range limits {
			few := 1 + rand.IntN(5)
			all.Go(func() {
				take := func() {
					d, err := s.Take(context.Background(), []tidegate.Check{{Key: "key", Limit: l, Cost: 1, MaxWait: farAhead}}, 1)
					if err != nil || !d.OK {
						t.Errorf("%s: %v, %v", l, d, err)
					}
					sent[i]++
				}
				for range few {
					take()
				}
				certain[i] = sent[i]
				begun.Done()
				for range few {
					take()
				}
			})
		}
		begun.Wait()
		if err := s.Snapshot(path); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		for i, l := range limits {
			if n := used(s, l); n != sent[i] {
				t.Fatalf("round %d: %s has %d used, want %d", round, l, n, sent[i])
			}
		}
		var err error
		if s, err = Restore(path, Config{}); err != nil {
			t.Fatal(err)
		}
		for i, l := range limits {
			n := used(s, l)
			if n < certain[i] || n > sent[i] {
				t.Fatalf("round %d: %s has %d used after the restore, want %d to %d", round, l, n, certain[i], sent[i])
			}
			sent[i] = n
		}
	}
}
