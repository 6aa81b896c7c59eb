package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// When keys have to go, no key goes that has used more of its limit than one that stays, however
// many are exhausted, and in whatever order they are kept.
func TestLeastUsedGoFirst(t *testing.T) {
	const keys, events = 200, 5
	for _, a := range stateful {
		for _, exhausted := range []int{0, 10, 100, 149, 150, 151, 190, keys} {
			for _, keep := range []bool{false, true} { // the exhausted ones
				t.Run(fmt.Sprintf("%s/%d/%t", a, exhausted, keep), func(t *testing.T) {
					p := newPair(t, 64<<20)
					s, l := p.bounded, tidegate.MustLimit(specOf("shed", a, events, 24*time.Hour, tidegate.EvictLeast))
					lim, err := s.compile(l)
					if err != nil {
						t.Fatal(err)
					}
					used := make(map[keyHash]int, keys)
					for i, n := range rand.New(rand.NewPCG(uint64(exhausted), 1)).Perm(keys) {
						uses := events
						if n >= exhausted {
							uses = 1 + n%(events-1)
						}
						key := fmt.Sprint("key", i)
						for range uses {
							if !ask1(t, s, l, key).OK {
								t.Fatalf("%s is refused", key)
							}
						}
						used[s.hash.sum(key, lim.salt)] = uses
					}
					g, now := segmentOf(t, s.allTables()[0]), s.now()
					all := s.takeOut(lim, g, nil, now)
					kept := make(map[keyHash]bool, keys)
					for _, e := range s.shed(lim, g, all, keys*3/4, now, keep) {
						g.putBack(e)
						kept[e.key] = true
					}
					mostGone, leastKept, gone := 0, events, 0
					for k, uses := range used {
						if kept[k] {
							leastKept = min(leastKept, uses)
						} else {
							mostGone, gone = max(mostGone, uses), gone+1
						}
					}
					want := keys / 4
					if keep {
						want = min(want, keys-exhausted)
					}
					if gone != want || mostGone > leastKept {
						t.Errorf("%d keys are gone, want %d; one of them had used %d, and one that stays %d", gone, want, mostGone, leastKept)
					}
				})
			}
		}
	}
}

// segmentOf returns the only segment of a table, locked.
func segmentOf(t *testing.T, in *table) *segment {
	t.Helper()
	segs := in.dir.Load().segs
	if len(segs) != 1 {
		t.Fatalf("%d segments", len(segs))
	}
	g := segs[0].Load()
	g.mu.Lock()
	t.Cleanup(g.mu.Unlock)
	return g
}

// A floor is for the request that has it: in a full store, keys that have room without it are not
// exhausted, so they make room even if exhausted ones stay, and are counted as evicted.
func TestFloorExhaustsNobody(t *testing.T) {
	for _, a := range stateful {
		for _, full := range []tidegate.OnFull{tidegate.EvictLeast, tidegate.RefuseNew} {
			t.Run(fmt.Sprint(a, "/", full), func(t *testing.T) {
				now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				s := Open(Config{MaxBytes: 64 << 10, Now: func() time.Time { return now }})
				l := tidegate.MustLimit(specOf("floor", a, 10, 24*time.Hour, full))
				for i := range 5000 { // each uses 1 of 10, at least
					c := tidegate.Check{Key: fmt.Sprint("key", i), Limit: l, Cost: 1}
					if i >= 3000 {
						c.Floor = l.Capacity() - 1
					}
					if d, err := s.Take(context.Background(), []tidegate.Check{c}, 1); err != nil || !d.OK {
						t.Fatalf("request %d: %+v, %v", i, d, err)
					}
				}
				if is := s.Stats(); is.Forgotten == 0 || is.Evicted != is.Forgotten {
					t.Errorf("%d keys were forgotten, and %d of them held nobody back; want all", is.Forgotten, is.Evicted)
				}
			})
		}
	}
}
