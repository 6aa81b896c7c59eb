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
