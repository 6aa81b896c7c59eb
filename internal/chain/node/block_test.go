package node

import (
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// Five a minute and a block of ten minutes: whoever is refused is told the block's wait
// each time, from the backend as from memory, and the backend is not asked each time.
func TestRememberedRefusalTellsTheLongest(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow} {
		synctest.Test(t, func(t *testing.T) {
			block := tidegate.MustLimit(tidegate.Spec{
				Name: "login", Scope: "block", Events: 1, Period: 10 * time.Minute, Algorithm: tidegate.SlidingLog,
				Terms: &tidegate.Terms{Role: tidegate.Blocks, Handling: tidegate.Handling{Final: true}},
			})
			five := tidegate.MustLimit(tidegate.Spec{
				Name: "login", Events: 5, Period: time.Minute, Algorithm: a, Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: block}},
			})
			inner := newSlow()
			n := newNode(inner, Options{})
			defer n.Close()
			gate := tidegate.NewGate(matched{{Key: "ann", Limit: five, Cost: 1}, {Key: "ann", Limit: block}}, n)
			began := time.Time{}
			for i := range 60 {
				d := gate.Decide(t.Context(), &tidegate.Request{})
				if d.OK != (i < 5) || d.Err != nil {
					t.Fatalf("%s: request %d: %+v", a, i, d)
				}
				if i == 5 {
					began = time.Now()
				}
				if i >= 5 {
					// To the second, as it is told: asking takes a moment.
					if left := 10*time.Minute - time.Since(began); d.RetryAfter < left-time.Second || d.RetryAfter > left+time.Second {
						t.Errorf("%s: request %d is told to come back in %s, want %s", a, i, d.RetryAfter, left)
					}
					time.Sleep(40 * time.Millisecond)
				}
			}
			inner.mu.Lock()
			defer inner.mu.Unlock()
			if calls := len(inner.calls); calls > 15 {
				t.Errorf("%s: the backend was called %d times for 60 requests", a, calls)
			}
		})
	}
}

// A block that is over does not come back when the backend goes away: whoever was admitted since, or has not asked
// since, is admitted. One that is not over lasts as long as was told.
func TestBlockIsOverInAnOutage(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow} {
		t.Run(a.String(), func(t *testing.T) { testBlockIsOverInAnOutage(t, a) })
	}
}

func testBlockIsOverInAnOutage(t *testing.T, a tidegate.Algorithm) {
	const lasts = time.Minute
	for _, deny := range []int{0, -1} { // remembered refusals, or none
		for _, asks := range []bool{true, false} { // between the block and the outage
			if deny < 0 && !asks {
				continue // nobody knows when it ended
			}
			for _, after := range []time.Duration{-30 * time.Second, -2 * time.Second, time.Second, 13 * time.Second, 59 * time.Second, 2 * time.Minute} {
				synctest.Test(t, func(t *testing.T) {
					block := tidegate.MustLimit(tidegate.Spec{
						Name: "login", Scope: "block", Events: 1, Period: lasts, Algorithm: tidegate.SlidingLog,
						Terms: &tidegate.Terms{Role: tidegate.Blocks, Handling: tidegate.Handling{Final: true, OnStoreFailure: tidegate.FailLocal}},
					})
					five := tidegate.MustLimit(tidegate.Spec{
						Name: "login", Events: 5, Period: 10 * time.Second, Algorithm: a,
						Terms: &tidegate.Terms{AtEnd: tidegate.AtEnd{Block: block}, Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}},
					})
					inner := &faulty{}
					n := newNode(inner, forFew(Options{DenyEntries: deny}))
					defer n.Close()
					gate := tidegate.NewGate(matched{{Key: "ann", Limit: five, Cost: 1}, {Key: "ann", Limit: block}}, n)
					ask := func() tidegate.Decision { return gate.Decide(t.Context(), &tidegate.Request{}) }
					for range 6 {
						ask()
					}
					end := time.Now().Add(lasts)
					for time.Until(end) > time.Second { // they are refused, and it does not last longer by that
						if d := ask(); d.OK {
							t.Fatal("admitted while it lasts")
						}
						if left := time.Until(end); after < 0 && left <= -after {
							break
						}
						time.Sleep(900 * time.Millisecond)
					}
					time.Sleep(time.Until(end.Add(after)))
					if asks && after > 0 {
						if d := ask(); !d.OK {
							t.Fatalf("%s after its end: %+v", after, d)
						}
					}
					inner.set(broken)
					d := ask()
					if d.OK != (after > 0) {
						t.Errorf("deny %d, asked before the outage %t, %s after the end of the block: %+v", deny, asks, after, d)
					}
					if left := time.Until(end); deny == 0 && after < 0 && (d.RetryAfter < left-time.Second || d.RetryAfter > left+time.Second) {
						t.Errorf("%s before the end of the block it is told to last for %s", -after, d.RetryAfter)
					}
					time.Sleep(time.Hour)
				})
			}
		}
	}
}

// blocking returns what asks a Node for one of five in ten seconds, with a block.
func blocking(t *testing.T, a tidegate.Algorithm, lasts time.Duration) (ask func(n *Node) tidegate.Decision) {
	handling := tidegate.Handling{OnStoreFailure: tidegate.FailLocal}
	five := tidegate.Spec{Name: "login", Events: 5, Period: 10 * time.Second, Algorithm: a, Terms: &tidegate.Terms{Handling: handling}}
	handling.Final = true
	block := tidegate.MustLimit(tidegate.Spec{
		Name: "login", Scope: "block", Events: 1, Period: lasts, Algorithm: tidegate.SlidingLog, Terms: &tidegate.Terms{Role: tidegate.Blocks, Handling: handling},
	})
	five.Terms.AtEnd.Block = block
	checks := matched{{Key: "ann", Limit: tidegate.MustLimit(five), Cost: 1}, {Key: "ann", Limit: block}}
	return func(n *Node) tidegate.Decision {
		return tidegate.NewGate(checks, n).Decide(t.Context(), &tidegate.Request{})
	}
}

// A block that is over does not come back either in a process that has taken over since.
func TestBlockIsOverAfterHandOvers(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow} {
		for _, after := range []time.Duration{-20 * time.Second, time.Second, time.Hour} {
			for passes := 1; passes < 3; passes++ {
				synctest.Test(t, func(t *testing.T) {
					way := &faulty{}
					open := func() *Node { return newNode(way, forFew(Options{})) }
					n, ask := open(), blocking(t, a, time.Minute)
					for range 6 {
						ask(n)
					}
					end := time.Now().Add(time.Minute)
					time.Sleep(50 * time.Second)
					if d := ask(n); d.OK {
						t.Fatal("admitted while it lasts")
					}
					time.Sleep(time.Until(end.Add(after)) - 10*time.Second)
					for range passes {
						n = pass(t, n, open)
					}
					time.Sleep(time.Until(end.Add(after)))
					way.set(broken)
					if d := ask(n); d.OK != (after > 0) {
						t.Errorf("%s, %s after the end of the block and after %d hand-overs: %+v", a, after, passes, d)
					}
					_ = n.Close()
				})
			}
		}
	}
}

// In an outage one block follows the other on each of several instances, and each lasts as long as it is told.
func TestBlocksInAnOutage(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.SlidingLog, tidegate.SubWindows, tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow} {
		for _, nodes := range []int{1, 2, 8} {
			synctest.Test(t, func(t *testing.T) {
				const lasts = time.Minute
				n, ask := newNode(&faulty{fault: broken}, forFew(Options{Instances: func() int { return nodes }})), blocking(t, a, lasts)
				for round := range 3 {
					d := tidegate.Decision{OK: true}
					for range 6 {
						d = ask(n)
					}
					if d.OK || d.RetryAfter != lasts {
						t.Errorf("%s, %d instances, block %d is told to last for %s", a, nodes, round, d.RetryAfter)
					}
					time.Sleep(lasts - time.Second)
					if ask(n).OK {
						t.Errorf("%s, %d instances: admitted during block %d", a, nodes, round)
					}
					time.Sleep(20 * time.Second)
				}
				_ = n.Close()
			})
		}
	}
}
