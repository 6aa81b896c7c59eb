package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

func aboveFloor(c tidegate.Check, floor int64) tidegate.Check {
	c.Floor = floor
	return c
}

// A refusal for a floor says nothing about requests with a lower one, and everything about those
// with the same or a higher one.
func TestDenialsGoByTheFloor(t *testing.T) {
	for _, a := range countingAlgorithms {
		deny(t, func(s *denying) {
			c := tidegate.Check{Key: "ann", Limit: tokens(a, tidegate.FailLocal), Cost: 1}
			for range 115 {
				s.inner.Store.Take(t.Context(), []tidegate.Check{c}, 1)
			}
			s.refused(true, aboveFloor(c, 5)) // 5 are left
			s.refused(false, aboveFloor(c, 5))
			s.refused(false, aboveFloor(c, 9))
			two := c
			two.Cost = 2
			if d := s.refused(false, aboveFloor(two, 4)); d.Remaining > 1 {
				s.Errorf("%s: %+v, of 5 left above 4", a, d)
			}
			if d := s.take(aboveFloor(c, 4)); !d.OK || d.Remaining != 0 {
				s.Errorf("%s: the last above 4: %+v", a, d)
			}
			s.asked(true)
			for i := range 4 {
				if d := s.take(c); !d.OK {
					s.Errorf("%s: number %d of those that remain: %+v", a, i+1, d)
				}
				s.asked(true)
			}
			s.refused(true, c)
			s.refused(false, aboveFloor(c, 1))
		})
	}
}

// Requests with different floors do not share a call: each is told by its own.
func TestFloorsAreAskedApart(t *testing.T) {
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		all := []tidegate.Check{hundred, aboveFloor(hundred, 10), aboveFloor(hundred, 20)}
		for _, check := range all {
			for range 4 {
				c.come(1, check)
			}
		}
		c.Wait()
		inner.wantCalls(t, 1, 1, 1, 3, 3, 3)
		if got := c.granted(); got != 12 {
			t.Errorf("%d granted", got)
		}
	})
}

// While the backend is away, so much of what this node may use has to remain as well.
func TestFloorInAnOutage(t *testing.T) {
	for _, a := range countingAlgorithms {
		for _, nodes := range []int{1, 2, 3} {
			synctest.Test(t, func(t *testing.T) {
				limit := tokens(a, tidegate.FailLocal)
				way := &faulty{}
				n := newNode(way, Options{Instances: func() int { return nodes }})
				defer n.Close()
				way.set(broken)
				spend(t, n, perSecond, "k", DefaultFailures)
				passed := func(floor int64) (granted int64) {
					for {
						d, err := n.Take(t.Context(), []tidegate.Check{{Key: "ann", Limit: limit, Cost: 1, Floor: floor}}, 1)
						if err != nil {
							t.Fatal(err)
						}
						if !d.OK {
							return granted
						}
						granted++
					}
				}
				low, all := passed(60), passed(0)
				if low != 60/int64(nodes) || all != 60/int64(nodes) {
					t.Errorf("%s on %d nodes: %d passed above 60 of 120, then %d of the rest", a, nodes, low, all)
				}
				if d, err := n.Take(t.Context(), []tidegate.Check{{Key: "bob", Limit: limit, Cost: 50, Floor: 60}}, 1); err != nil || d.Never {
					t.Errorf("%s on %d nodes: 50 above 60 of 120: %+v, %v", a, nodes, d, err)
				}
				if d, err := n.Take(t.Context(), []tidegate.Check{{Key: "bob", Limit: limit, Cost: 61, Floor: 60}}, 1); err != nil || !d.Never {
					t.Errorf("%s on %d nodes: 61 above 60 of 120: %+v, %v", a, nodes, d, err)
				}
			})
		}
	}
}

// What is seen of a key by those who leave some is what is used, not what they may not use.
func TestSeenAboveAFloor(t *testing.T) {
	n := newNode(memory.New(), Options{})
	defer n.Close()
	l := tokens(tidegate.FixedWindow, tidegate.FailLocal)
	f := func(floor, remaining, want int64) {
		t.Helper()
		checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 1, Floor: floor}}
		n.see(checks, &tidegate.Decision{OK: true, Limit: l, Remaining: remaining, Receipt: tidegate.Receipt{At: 1}}, time.Second)
		if used, _, _ := n.seen.look(n.seen.name(l, "k")); used != want {
			t.Errorf("%d remain above %d of 120: %d used, want %d", remaining, floor, used, want)
		}
	}
	f(0, 50, 70)
	f(30, 10, 80)
	f(30, 0, 90)
}
