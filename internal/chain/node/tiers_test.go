package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// What a narrower tier gives back, or admits, takes nothing out of what a wider one of the same counter has admitted.
func TestBacklogOfTiers(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Quota,
	} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprint(a, " ", back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Hour)
					free, pro := tierOf(a, 50), tierOf(a, 1000)
					way := &faulty{fault: broken}
					n := newNode(way, forFew(Options{}))
					defer n.Close()
					take := func(l *tidegate.Limit, cost int64) tidegate.Decision {
						d, err := n.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: l, Cost: cost}}, 1)
						if err != nil || !d.OK {
							t.Fatalf("%+v %v", d, err)
						}
						return d
					}
					one := take(free, 1)
					take(pro, 300)
					want := int64(301)
					if back {
						if err := n.Adjust(t.Context(), one.Receipt, []tidegate.Check{{Key: "k", Limit: free, Cost: -1}}); err != nil {
							t.Fatal(err)
						}
						want = 300
					}
					way.set(none)
					time.Sleep(5 * time.Second)
					if got, h := way.posted(pro, "k"), n.Health(); got != want || h.Lost != 0 {
						t.Errorf("%s, back %t: %d charged, want %d; %d lost", a, back, got, want, h.Lost)
					}
					if d := tidegate.New(n, pro).Peek(t.Context(), "k"); d.Remaining != 1000-want {
						t.Errorf("%s, back %t: %d left in the store, want %d", a, back, d.Remaining, 1000-want)
					}
				})
			})
		}
	}
}

// The true cost that is charged under a narrower tier is added to what a wider one has admitted, also while that is
// being posted.
func TestBacklogOfTiersThatAreSettled(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog,
	} {
		for _, posting := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Hour)
				free, pro := tierOf(a, 50), tierOf(a, 1000)
				way := &faulty{fault: broken}
				n := newNode(way, forFew(Options{}))
				defer n.Close()
				d, err := n.Reserve(t.Context(), []tidegate.Check{{Key: "k", Limit: free, Cost: 1, Estimate: true}}, time.Hour)
				if err != nil || !d.OK {
					t.Fatal(err)
				}
				if d, err := n.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: pro, Cost: 300}}, 1); err != nil || !d.OK {
					t.Fatal(err)
				}
				var posts []post
				if posting {
					n.mu.Lock()
					posts = n.server(0).backlog.take(maxPosts, n.now(), n.now())
					n.mu.Unlock()
				}
				if err := n.Settle(t.Context(), d.Receipt, 5); err != nil {
					t.Fatal(err)
				}
				if posting {
					n.mu.Lock()
					n.server(0).backlog.putBack(posts, n.now())
					n.mu.Unlock()
				}
				way.set(none)
				time.Sleep(5 * time.Second)
				if got := way.posted(pro, "k"); got != 305 {
					t.Errorf("%s, posting %t: %d charged, want 305", a, posting, got)
				}
			})
		}
	}
}

// tierOf returns one of two tiers of a limit, which have one counter.
func tierOf(a tidegate.Algorithm, events int64) *tidegate.Limit {
	s := tidegate.Spec{
		Name: "l", Algorithm: a, Events: events, Period: 1000 * time.Hour,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}},
	}
	if a == tidegate.Quota {
		s.Period, s.Calendar = 0, tidegate.Month
	}
	return tidegate.MustLimit(s)
}
