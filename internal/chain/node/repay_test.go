package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// spend takes n from a key, one by one, and reports how many were admitted.
func spend(t *testing.T, g *Node, l *tidegate.Limit, key string, n int) (admitted int) {
	t.Helper()
	for range n {
		d, err := g.Take(t.Context(), []tidegate.Check{{Key: key, Limit: l, Cost: 1, MaxWait: longest(l)}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.OK {
			admitted++
		}
	}
	return admitted
}

// longest lets a leaky bucket admit what it has places for.
func longest(l *tidegate.Limit) time.Duration {
	if l.Algorithm == tidegate.LeakyBucket {
		return 10 * l.Period
	}
	return 0
}

// What was admitted locally is charged to the inner store, each amount once.
func TestBacklogIsChargedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{}
		g := newNode(way, Options{Instances: func() int { return 2 }})
		l := limit("l", 100, tidegate.FailLocal)
		spend(t, g, l, "a", 10)
		way.set(broken)
		for i, key := range []string{"a", "b", "c"} {
			spend(t, g, l, key, 5+i)
		}
		_, _ = g.Take(t.Context(), []tidegate.Check{{Key: "d", Limit: l, Cost: 0}}, 1) // a peek owes nothing
		time.Sleep(time.Minute)
		if h := g.Health(); h.Backlog != 3 || h.Posted != 0 {
			t.Errorf("in the outage: %+v", h)
		}
		way.set(none)
		time.Sleep(5 * time.Second)
		for i, key := range []string{"a", "b", "c"} {
			if n := way.posted(l, key); n != int64(5+i) {
				t.Errorf("%d charged to %s, want %d", n, key, 5+i)
			}
		}
		if d := tidegate.New(g, l).Peek(t.Context(), "a"); d.Remaining != 85 || byFallback(&d) {
			t.Errorf("%+v, want 85 left in the inner store", d)
		}
		if h := g.Health(); h.Backlog != 0 || h.Posted != 3 || h.Lost != 0 {
			t.Errorf("afterwards: %+v", h)
		}
		wantNoGoroutine(t) // also without Close
		_ = g.Close()
	})
}

// A payment that surely failed is made later; one that may have been made is not made
// again.
func TestBacklogThatCannotBeCharged(t *testing.T) {
	f := func(is fault, posted, lost int64) {
		synctest.Test(t, func(t *testing.T) {
			way := &faulty{fault: broken}
			g := newNode(way, Options{})
			l := limit("l", 100, tidegate.FailLocal)
			spend(t, g, l, "a", 7)
			way.setAdjust(is)
			way.set(none)
			time.Sleep(2 * time.Second) // Take works, Adjust does not
			if n := way.posted(l, "a"); n != 0 {
				t.Errorf("%d posted", n)
			}
			way.setAdjust(none)
			time.Sleep(2 * time.Second)
			if n, h := way.posted(l, "a"), g.Health(); n != posted || h.Lost != lost || h.Backlog != 0 || h.State != OK {
				t.Errorf("%d posted, want %d: %+v", n, posted, h)
			}
			_ = g.Close()
		})
	}
	f(broken, 7, 0)
	f(mad, 7, 0)
	f(frozen, 0, 1)
}

// What is owed is what is used here and not known there, by this node's share, and
// never more than was admitted.
func TestBacklogAmount(t *testing.T) {
	start := time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC)
	window := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour})
	bucket := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 60, Period: time.Hour})
	f := func(d backlogEntry, at time.Duration, want int64) {
		t.Helper()
		if got := d.amount(start, at); got != want {
			t.Errorf("%+v owes %d after %s, want %d", d, got, at, want)
		}
	}
	f(backlogEntry{limit: window, nodes: 1, admitted: 10, used: 10}, 0, 10)
	f(backlogEntry{limit: window, nodes: 3, admitted: 10, used: 30}, 0, 10)
	f(backlogEntry{limit: window, nodes: 3, admitted: 10, used: 80, known: 50}, 59*time.Minute, 10)
	f(backlogEntry{limit: window, nodes: 3, admitted: 10, used: 80, known: 50}, time.Hour, 0)
	f(backlogEntry{limit: window, nodes: 3, admitted: 1, used: 5}, 0, 1) // a cost above the share
	f(backlogEntry{limit: window, nodes: 5, admitted: 1, used: 1}, 0, 1) // of a limit of one
	f(backlogEntry{limit: bucket, nodes: 2, admitted: 90, used: 60, known: 60}, 0, 0)
	f(backlogEntry{limit: bucket, nodes: 2, admitted: 90, used: 60, known: 60, last: 20 * time.Minute}, 20*time.Minute, 10)
	f(backlogEntry{limit: bucket, nodes: 2, admitted: 90, used: 60, known: 60, last: 90 * time.Minute}, 90*time.Minute, 30)
	f(backlogEntry{limit: bucket, nodes: 2, admitted: 90, used: 60, known: 60, last: 90 * time.Minute}, 100*time.Minute, 25)
}

// Nodes that come and go change nothing of what was admitted and is still to be charged: not when more is admitted, nor when
// another answer of the backend is known, nor when a post comes back.
func TestBacklogAmountWhenTheNumberOfNodesChanges(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: "l", Algorithm: a, Events: 6000, Period: time.Hour}
		if a == tidegate.Quota {
			spec.Period, spec.Calendar = 0, tidegate.Day
		}
		l := tidegate.MustLimit(spec)
		c := tidegate.Check{Key: "k", Limit: l, Cost: 1}
		id := counterOf(&c)
		for _, changes := range [][]int64{{1, 3}, {3, 1}, {1, 3, 5, 2, 1}, {4, 1, 4, 1}, {2, 2}} {
			for _, known := range []int64{0, 50} {
				for _, pause := range []time.Duration{0, 30 * time.Second} {
					b := backlog{start: time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC)}
					var now time.Duration
					local := float64(known) // used according to the local store, of which nodes that come and go change nothing either
					sleep := func() {
						local = fade(l, local, b.start.Add(now), b.start.Add(now+pause))
						now += pause
					}
					due := func() int64 { return b.entries[id].amount(b.start, now) }
					want := func(what string, want int64) {
						t.Helper()
						if got := due(); got != want {
							t.Errorf("%s, %d are known, pauses of %s, nodes %v, %s: %d to be charged, want %d", a, known, pause, changes, what, got, want)
						}
					}
					admit := func(n, nodes int64) {
						local += float64(n * nodes)
						b.add(&c, n, n*nodes, int64(local), nodes, now)
					}
					admit(300, changes[0])
					want("at first", 300)
					for _, nodes := range changes[1:] {
						sleep()
						before := due()
						admit(1, nodes)
						want("one more", before+1)
					}
					last := changes[len(changes)-1]
					for _, nodes := range changes {
						sleep()
						before := due()
						b.reconcile(id, float64(2*known), nodes, now, now)
						want("another answer", before)
						admit(1, last)
						want("one more after the answer", before+1)
					}
					for _, nodes := range changes {
						before := due()
						posts := b.take(1, now, now)
						admit(5, nodes)
						b.putBack(posts, now)
						want("a post came back", before+5)
					}
				}
			}
		}
	}
}

// What could not be paid is joined with what was admitted meanwhile.
func TestBacklogThatComesBackIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		l := limit("l", 100, tidegate.FailLocal)
		spend(t, g, l, "a", 5)
		g.mu.Lock()
		posts := g.server(0).backlog.take(maxPosts, g.now(), g.now())
		g.mu.Unlock()
		spend(t, g, l, "a", 2)
		g.mu.Lock()
		g.server(0).backlog.putBack(posts, g.now())
		g.mu.Unlock()
		way.set(none)
		time.Sleep(5 * time.Second)
		if n := way.posted(l, "a"); n != 7 {
			t.Errorf("%d posted, want 5 and 2", n)
		}
		_ = g.Close()
	})
}

// A post that never succeeds is given up after a minute or so, and is no reason to
// open the circuit.
func TestBacklogIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		spend(t, g, limit("l", 100, tidegate.FailLocal), "a", 7)
		way.setAdjust(broken)
		way.set(none)
		time.Sleep(5 * time.Second)
		since := g.Health().Since
		time.Sleep(2 * time.Minute)
		if h := g.Health(); h.State != OK || !h.Since.Equal(since) || h.Backlog != 0 || h.Lost != 1 {
			t.Errorf("%+v", h)
		}
		wantNoGoroutine(t)
		_ = g.Close()
	})
}

// What no longer counts is not charged: it is neither billed to the next window nor
// to a bucket that would have drained.
func TestBacklogFades(t *testing.T) {
	testdep.SkipUnderRace(t)
	f := func(spec tidegate.Spec, n int, outage time.Duration, want int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(23*time.Hour + 30*time.Minute) // it was midnight
			way := &faulty{fault: broken}
			g := newNode(way, Options{})
			spec.Terms = &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}
			l := tidegate.MustLimit(spec)
			spend(t, g, l, "a", n)
			time.Sleep(outage)
			way.set(none)
			time.Sleep(5 * time.Second)
			if got, h := way.posted(l, "a"), g.Health(); got != want || h.Backlog != 0 {
				t.Errorf("%s: %d posted after %s, want %d: %+v", l, got, outage, want, h)
			}
			_ = g.Close()
		})
	}
	hour := tidegate.Spec{Algorithm: tidegate.FixedWindow, Events: 100, Period: time.Hour}
	f(hour, 50, 29*time.Minute, 50)
	f(hour, 50, 31*time.Minute, 0)
	bucket := tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 60, Period: time.Hour}
	f(bucket, 50, 19*time.Minute+30*time.Second, 30+1)
	f(bucket, 50, time.Hour, 0)
	f(tidegate.Spec{Algorithm: tidegate.SlidingLog, Events: 60, Period: time.Minute}, 50, 2*time.Minute, 0)
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 60, Calendar: tidegate.Day}, 50, 29*time.Minute, 50)
	f(tidegate.Spec{Algorithm: tidegate.Quota, Events: 60, Calendar: tidegate.Day}, 50, 31*time.Minute, 0)
	f(tidegate.Spec{Algorithm: tidegate.Concurrency, Events: 60, Period: time.Hour}, 50, time.Minute, 0)
}

// Once the store answers, what is owed does not fade any more, however long it takes to
// pay: others use the limit meanwhile.
func TestBacklogDoesNotFadeWhileOthersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		l := tidegate.MustLimit(tidegate.Spec{Algorithm: tidegate.TokenBucket, Events: 3600, Period: time.Hour})
		spend(t, g, l, "a", 100)
		way.setAdjust(broken)
		way.set(none)
		time.Sleep(30 * time.Second)
		way.setAdjust(none)
		time.Sleep(time.Second)
		if n := way.posted(l, "a"); n < 98 || n > 100 {
			t.Errorf("%d posted, want 100 less a second or two", n)
		}
		_ = g.Close()
	})
}

// What is admitted while counters are held is charged before they are asked of the store again, not when the hold ends.
func TestBacklogOfHeldCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		l := limit("l", 1000, tidegate.FailLocal)
		spend(t, g, l, "a", DefaultFailures+1)
		way.set(none)
		for g.Health().State == Degraded {
			time.Sleep(time.Millisecond)
		}
		for end := time.Now().Add(heldFor - 3*postEvery); time.Now().Before(end); {
			spend(t, g, l, "a", 1)
			time.Sleep(2 * postEvery)
			if h := g.Health(); h.Backlog != 0 {
				t.Errorf("not charged after %s, %s before the hold ends", 2*postEvery, time.Until(end))
				break
			}
		}
		_ = g.Close()
	})
}

// A key whose backlog is not paid when the store goes again has used both: what the store
// had counted by then, and what it had not been told.
func TestBacklogAddsToWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &faulty{fault: broken}
		g := newNode(way, Options{})
		l := limit("l", 10, tidegate.FailLocal)
		spend(t, g, l, "a", 5)
		way.setAdjust(broken)
		way.set(none)
		time.Sleep(5 * time.Second)
		if n := spend(t, g, l, "a", 3); n != 3 || g.Health().Backlog != 1 {
			t.Fatalf("%d admitted by the store: %+v", n, g.Health())
		}
		way.set(broken)
		if n := spend(t, g, l, "a", 10); n != 2 {
			t.Errorf("%d more admitted, want 2", n)
		}
		way.setAdjust(none)
		way.set(none)
		time.Sleep(5 * time.Second)
		if n := way.posted(l, "a"); n != 7 {
			t.Errorf("%d posted, want 5 and 2", n)
		}
		if d := tidegate.New(g, l).Peek(t.Context(), "a"); d.Remaining != 0 {
			t.Errorf("%+v, want none left", d)
		}
		_ = g.Close()
	})
}

// A cost above the share of a node is charged whole, however many nodes there are, and so is what comes after it.
func TestBacklogOfCostsAboveTheShare(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SlidingLog, tidegate.SubWindows, tidegate.Quota,
	} {
		spec := tidegate.Spec{Name: "l", Algorithm: a, Events: 10, Period: 24 * time.Hour}
		if a == tidegate.Quota {
			spec.Period, spec.Calendar = 0, tidegate.Day
		}
		l := tidegate.MustLimit(spec)
		for _, nodes := range []int{1, 2, 3, 10, 100} {
			for _, known := range []int64{0, 1} {
				for cost := int64(1); cost <= 9; cost++ {
					synctest.Test(t, func(t *testing.T) {
						way := &faulty{}
						g := newNode(way, forFew(Options{Instances: func() int { return nodes }}))
						defer g.Close()
						spend(t, g, l, "a", int(known))
						way.set(broken)
						admitted := int64(0)
						take := func(cost int64) {
							d, err := g.Take(t.Context(), []tidegate.Check{{Key: "a", Limit: l, Cost: cost}}, 1)
							if err != nil {
								t.Fatal(err)
							}
							if d.OK {
								admitted += cost
							}
						}
						take(cost)
						if known == 0 && admitted == 0 {
							t.Fatalf("%s, %d nodes: a cost of %d is not admitted on an unused counter", a, nodes, cost)
						}
						take(1)
						way.set(none)
						time.Sleep(5 * time.Second)
						if n := way.posted(l, "a"); n != admitted {
							t.Errorf("%s, %d nodes, %d used before, cost %d: %d posted, want %d", a, nodes, known, cost, n, admitted)
						}
					})
				}
			}
		}
	}
}

// What is given back after it has left its window, or drained, takes nothing that came later out of the backlog.

func TestReturnsThatComeTooLateLeaveTheBacklog(t *testing.T) {
	for _, a := range []tidegate.Algorithm{
		tidegate.TokenBucket, tidegate.LeakyBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Quota,
	} {
		for _, nodes := range []int{1, 2} {
			for _, late := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					way := &faulty{fault: broken}
					g := newNode(way, Options{Instances: func() int { return nodes }})
					defer g.Close()
					spec := tidegate.Spec{
						Name: "l", Events: 10, Period: time.Hour, Algorithm: a,
						Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}},
					}
					switch a {
					case tidegate.Quota:
						spec.Period, spec.Calendar = 0, tidegate.Day
					case tidegate.LeakyBucket:
						spec.Burst = 20
					}
					l := tidegate.MustLimit(spec)
					take := func(cost int64) (d tidegate.Decision) {
						d, err := g.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: l, Cost: cost, MaxWait: longest(l)}}, 1)
						if err != nil || !d.OK {
							t.Fatalf("%s: %+v, %v", l, d, err)
						}
						d.Receipt.At += int64(d.Wait/time.Microsecond) * 1024
						return d
					}
					time.Sleep(time.Minute) // so that no window ends between two requests
					early := take(2)
					want := int64(3)
					if late {
						time.Sleep(49 * time.Hour)
						take(3)
					} else {
						early, want = take(3), 2
					}
					cost := map[bool]int64{true: 2, false: 3}[late]
					if err := g.Adjust(t.Context(), early.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -cost}}); err != nil {
						t.Fatal(err)
					}
					way.set(none)
					time.Sleep(5 * time.Second)
					if n := way.posted(l, "k"); n != want {
						t.Errorf("%s, %d nodes, late %t: %d charged, want %d", l, nodes, late, n, want)
					}
				})
			}
		}
	}
}

// What an entry of the backlog has faded by need not be what a window has forgotten: a return takes out of it only
// what the window still held.
func TestReturnsWithinTheWindowTakeTheirOwn(t *testing.T) {
	testdep.SkipUnderRace(t)
	for _, a := range []tidegate.Algorithm{tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog, tidegate.Quota} {
		for _, nodes := range []int{1, 3} {
			for _, pause := range []time.Duration{time.Second, 5 * time.Minute, 20 * time.Minute, 58 * time.Minute, 61 * time.Minute} {
				synctest.Test(t, func(t *testing.T) {
					way := &faulty{fault: broken}
					g := newNode(way, Options{Instances: func() int { return nodes }})
					defer g.Close()
					spec := tidegate.Spec{
						Name: "l", Events: 20, Period: time.Hour, Algorithm: a,
						Terms: &tidegate.Terms{Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}},
					}
					if a == tidegate.Quota {
						spec.Period, spec.Calendar = 0, tidegate.Day
					}
					l := tidegate.MustLimit(spec)
					take := func(cost int64) tidegate.Decision {
						d, err := g.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: l, Cost: cost}}, 1)
						if err != nil || !d.OK {
							t.Fatalf("%s: %+v, %v", l, d, err)
						}
						return d
					}
					time.Sleep(time.Minute) // so that no window ends between two requests
					for range 30 {          // the circuit opens, and nothing is posted in vain
						_, _ = g.Take(t.Context(), []tidegate.Check{{Key: "other", Limit: l, Cost: 1}}, 1)
					}
					early := take(2)
					time.Sleep(pause)
					take(3)
					if err := g.Adjust(t.Context(), early.Receipt, []tidegate.Check{{Key: "k", Limit: l, Cost: -2}}); err != nil {
						t.Fatal(err)
					}
					way.set(none)
					time.Sleep(5 * time.Second)
					if n := way.posted(l, "k"); n != 3 {
						t.Errorf("%s, %d nodes, returned after %s: %d charged, want 3", l, nodes, pause, n)
					}
				})
			}
		}
	}
}
