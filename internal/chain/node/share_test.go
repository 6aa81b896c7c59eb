package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// A limit divided by the nodes: what a fleet admits in an hour, all nodes asking all
// the time. Windows round down, and nobody is left with nothing.
func TestTrap4ShareIsNeverNothing(t *testing.T) {
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
