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
					n := newNode(inner, Options{DenyEntries: deny})
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
