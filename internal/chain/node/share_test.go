package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A limit divided by the nodes: what a fleet admits in an hour, all nodes asking all
// the time. Windows round down, and nobody is left with nothing.
func TestTrap4ShareIsNeverNothing(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(spec tidegate.Spec, nodes int, cost int64, least, most int) {
		t.Helper()
		t.Run(spec.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := tidegate.MustLimit(spec)
				fleet := newFleet(t, nodes, l)
				fleet.check.Cost = cost
				fleet.each(func(w *faulty) { w.set(broken) })
				every := time.Second
				if isBucket(l) && nodes <= 5 {
					every = 10 * time.Millisecond // what is due must not wait to be asked for
				}
				fleet.press(1, every)
				time.Sleep(time.Minute)
				got := fleet.between(0, time.Minute)
				if got < least || got > most {
					t.Errorf("%s on %d nodes, at a cost of %d: %d admitted in a minute, want %d to %d", l, nodes, cost, got, least, most)
				}
				fleet.end()
			})
		})
	}
	bucket := tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 3, Period: time.Second}
	f(bucket, 5, 1, 180-5, 180+5) // 3/s on five nodes
	f(bucket, 5, 3, 60-5, 60+5)
	f(bucket, 2, 2, 90-2, 90+3)
	f(bucket, 5, 4, 0, 0) // can never fit
	f(tidegate.Spec{Algorithm: tidegate.LeakyBucket, Events: 3, Period: time.Second, Burst: 2}, 5, 1, 180-5, 180+5)
	for _, a := range []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		f(tidegate.Spec{Algorithm: a, Events: 10, Period: time.Hour}, 3, 1, 9, 9)
		f(tidegate.Spec{Algorithm: a, Events: 3, Period: time.Hour}, 5, 1, 5, 5)
		f(tidegate.Spec{Algorithm: a, Events: 100, Period: time.Hour}, 3, 40, 3, 3)
		f(tidegate.Spec{Algorithm: a, Events: 100, Period: time.Hour}, 3, 10, 9, 9)
	}
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 10, Calendar: tidegate.Year}, 3, 1, 9, 9)
	f(tidegate.Spec{Algorithm: tidegate.Concurrency, Events: 10, Period: time.Hour}, 3, 1, 9, 9)
	f(tidegate.Spec{Algorithm: tidegate.Concurrency, Events: 3, Period: time.Hour}, 5, 1, 5, 5)
	// So slow that no wider one can be had: one each.
	f(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1, Period: 14 * 24 * time.Hour}, 50, 1, 50, 50)
}

// A node more or less refills nothing.
func TestChangeOfNodesRefillsNothing(t *testing.T) {
	// In a bubble no hour ends meanwhile, and no budget begins.
	synctest.Test(t, testChangeOfNodesRefillsNothing)
}

func testChangeOfNodesRefillsNothing(t *testing.T) {
	nodes := 2
	g := newNode(&faulty{fault: broken}, Options{Deadline: patient, Instances: func() int { return nodes }})
	defer g.Close()
	l := limit("local", 100, tidegate.FailLocal)
	admitted := func() (n int) {
		for range 200 {
			if d, _ := g.Take(t.Context(), []tidegate.Check{one(l)}, 1); d.OK {
				n++
			}
		}
		return n
	}
	if n := admitted(); n != 50 {
		t.Errorf("%d admitted by one of two, want 50", n)
	}
	for _, nodes = range []int{3, 5, 2, 1} {
		if n := admitted(); n != 0 {
			t.Errorf("%d more by one of %d", n, nodes)
		}
	}
}

// What is given back after nodes have come or gone is what was taken, not more and not less.
func TestReturnAfterAChangeOfNodes(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows} {
		for _, change := range [][]int{{3}, {1, 4}, {4, 1}, {2, 5, 3, 1}, {1, 2, 1}} {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(5 * time.Minute) // not at the edge of a window
				nodes := change[0]
				g := newNode(&faulty{fault: broken}, forFew(Options{Instances: func() int { return nodes }}))
				defer g.Close()
				l := tidegate.MustLimit(tidegate.Spec{Name: "l", Events: 1000, Period: 24 * time.Hour, Algorithm: a})
				taken := map[int64][]tidegate.Receipt{} // by how many nodes there were
				var total, back int64
				for _, nodes = range change {
					for range 10 {
						d, err := g.Take(t.Context(), []tidegate.Check{one(l)}, 1)
						if err != nil || !d.OK {
							t.Fatalf("%+v, %v", d, err)
						}
						taken[int64(nodes)] = append(taken[int64(nodes)], d.Receipt)
						total += int64(nodes)
						time.Sleep(time.Millisecond)
					}
				}
				for was, receipts := range taken {
					for _, r := range receipts[:5] {
						c := one(l)
						c.Cost = -1
						if err := g.Adjust(t.Context(), r, []tidegate.Check{c}); err != nil {
							t.Error(err)
						}
						back += was
					}
				}
				if used, err := g.localUse(l, "k"); err != nil || used != total-back {
					t.Errorf("%s, nodes %v: %d used after %d of %d were given back, %v", a, change, used, back, total, err)
				}
			})
		}
	}
}

// A share of less than one request is one request at first, and then paid for: whatever the
// algorithm, the fleet has the rate of the limit and one request per node, not one per node in
// every window.
func TestShareOfLessThanARequestIsPaidFor(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(spec tidegate.Spec, nodes int, cost int64) {
		t.Helper()
		if spec.Algorithm == tidegate.LeakyBucket {
			spec.Burst = spec.Events - 1
		}
		l := tidegate.MustLimit(spec)
		synctest.Test(t, func(t *testing.T) {
			fleet := newFleet(t, nodes, l)
			fleet.check.Cost = cost
			fleet.each(func(w *faulty) { w.set(broken) })
			fleet.press(1, 100*time.Millisecond)
			const lasts = 20 * time.Second
			time.Sleep(lasts)
			got := int64(fleet.between(0, lasts)) * cost
			limit := int64(lasts/l.Period) * l.Events
			// A request is due up to 100 ms before it is made, and a window ends before another begins.
			if most, least := limit+int64(nodes)*cost+l.Capacity(), limit*6/10; got > most || got < least {
				t.Errorf("%s on %d nodes, at a cost of %d: %d admitted in %s, want %d to %d", l, nodes, cost, got, lasts, least, most)
			}
			fleet.end()
		})
	}
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		for _, events := range []int64{1, 2, 3} {
			if testdep.RaceEnabled && events != 1+int64(a)%3 {
				continue // it takes its time
			}
			spec := tidegate.Spec{Algorithm: a, Events: events, Period: time.Second}
			f(spec, 5, 1)
			f(spec, 7, events)
		}
		f(tidegate.Spec{Algorithm: a, Events: 20, Period: 2 * time.Second}, 12, 5)
	}
}

// The first request of each node is the only one that is not paid for, also where a larger
// bucket is needed for it: nobody gets a second one sooner.
func TestFirstRequestIsTheOnlyOne(t *testing.T) {
	for _, nodes := range []int{2, 3, 5, 9, 17} {
		synctest.Test(t, func(t *testing.T) {
			l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 1, Period: time.Second})
			g := newNode(&faulty{fault: broken}, Options{Deadline: patient, Instances: func() int { return nodes }})
			defer g.Close()
			var at []time.Duration
			began := time.Now()
			for len(at) < 3 {
				if d, _ := g.Take(t.Context(), []tidegate.Check{one(l)}, 1); d.OK {
					at = append(at, time.Since(began))
				}
				time.Sleep(100 * time.Millisecond)
			}
			for i, want := range []time.Duration{0, time.Duration(nodes) * time.Second, 2 * time.Duration(nodes) * time.Second} {
				if at[i] < want || at[i] > want+time.Second/2 {
					t.Errorf("one of %d: request %d admitted after %s, want %s", nodes, i, at[i], want)
				}
			}
		})
	}
}

// What is given back, or turns out to have cost less, need not be waited for.
func TestPaceIsGivenBack(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows} {
		synctest.Test(t, func(t *testing.T) {
			l := tidegate.MustLimit(tidegate.Spec{Algorithm: a, Events: 3, Period: time.Second})
			g := newNode(&faulty{fault: broken}, Options{Deadline: patient, Instances: func() int { return 10 }})
			defer g.Close()
			check := []tidegate.Check{one(l)}
			for i := range 5 {
				d, err := g.Take(t.Context(), check, 1)
				if err != nil || !d.OK {
					t.Fatalf("%s: take %d: %+v, %v", a, i, d, err)
				}
				back := []tidegate.Check{one(l)}
				back[0].Cost = -1
				if err := g.Adjust(t.Context(), d.Receipt, back); err != nil {
					t.Fatal(err)
				}
			}
			reserve := []tidegate.Check{one(l)}
			reserve[0].Estimate = true
			for i := range 5 {
				d, err := g.Reserve(t.Context(), reserve, time.Minute)
				if err != nil || !d.OK {
					t.Fatalf("%s: reservation %d: %+v, %v", a, i, d, err)
				}
				if err := g.Settle(t.Context(), d.Receipt, 0); err != nil {
					t.Fatal(err)
				}
			}
			if d, _ := g.Take(t.Context(), check, 1); !d.OK {
				t.Errorf("%s: refused although all was given back: %+v", a, d)
			}
			if d, _ := g.Take(t.Context(), check, 1); d.OK || d.Limit != l || d.RetryAfter < 3*time.Second || d.Remaining != 0 {
				t.Errorf("%s: %+v, want refused for 10/3 s", a, d)
			}
			if err := g.Reset(t.Context(), check); err == nil {
				t.Error("a broken backend was reset")
			}
			if d, _ := g.Take(t.Context(), check, 1); !d.OK {
				t.Errorf("%s: refused after a reset: %+v", a, d)
			}
		})
	}
}
