// Package gracetest compares what stores make of limits that give way for a while, through restarts and on
// several nodes, with one memory store that nothing happens to. That such a store is right is shown by
// store/storetest. Start with [Run].
package gracetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Run plays random requests by every algorithm whose limits give way. open returns what returns the store
// that the next request is put to: another one, or the same after a restart, with the same counters. Stores go by
// the clock now.
func Run(t *testing.T, open func(t *testing.T, r *rand.Rand, now func() time.Time) (next func() tidegate.Store)) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		t.Run(a.String(), func(t *testing.T) {
			var all outcomes
			for seed := range testdep.Longer(uint64(3), 50) {
				h := &history{T: t, seed: seed, rand: rand.New(rand.NewPCG(seed, uint64(a))), now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
				now := func() time.Time { return h.now }
				h.next, h.whole = open(t, h.rand, now), memory.Open(memory.Config{Now: now})
				lasts := time.Duration(1+h.rand.IntN(40)) * time.Second
				h.limit = tidegate.MustLimit(tidegate.Spec{Name: "a", Events: 5, Period: time.Minute, Algorithm: a, Terms: &tidegate.Terms{MaxOver: lasts}})
				h.ceiling = tidegate.MustLimit(tidegate.Spec{Name: "a", Scope: "ceiling", Events: 10, Period: time.Minute, Algorithm: a})
				for range 80 {
					h.now = h.now.Add(time.Duration(h.rand.Int64N(int64(8 * time.Second))).Truncate(time.Millisecond))
					h.ask(&all)
				}
			}
			if all.soft == 0 || all.refused == 0 {
				t.Errorf("%+v: the test has lost its point", all)
			}
		})
	}
}

type outcomes struct{ soft, refused int }

// history is requests of one key.
type history struct {
	*testing.T
	seed           uint64
	rand           *rand.Rand
	now            time.Time
	next           func() tidegate.Store
	whole          tidegate.Store
	limit, ceiling *tidegate.Limit
}

// always holds every request to the same checks.
type always []tidegate.Check

func (a always) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, a...)
}

// ask puts a request to both, which turns out to cost less than estimated, or more.
func (h *history) ask(all *outcomes) {
	h.Helper()
	cost := 1 + h.rand.Int64N(3)
	checks := always{{Key: "k", Limit: h.limit, Cost: cost, Estimate: true}, {Key: "k", Limit: h.ceiling, Cost: cost, Estimate: true}}
	is, visit := tidegate.NewGate(checks, h.next()).Enter(h.Context(), &tidegate.Request{})
	want, other := tidegate.NewGate(checks, h.whole).Enter(h.Context(), &tidegate.Request{})
	if show(is) != show(want) {
		h.Fatalf("%s, seed %d, at %s, cost %d:\n\tgot  %s\n\twant %s", h.limit, h.seed, h.now.Format(time.TimeOnly), cost, show(is), show(want))
	}
	h.now = h.now.Add(time.Duration(h.rand.Int64N(3000)) * time.Millisecond)
	outcome := tidegate.Outcome{CostKnown: true, Cost: h.rand.Int64N(6)}
	if err := visit.End(outcome); err != nil {
		h.Fatal(err)
	}
	if err := other.End(outcome); err != nil {
		h.Fatal(err)
	}
	switch {
	case is.Soft:
		all.soft++
	case !is.OK:
		all.refused++
	}
}

// show returns what a caller is told.
func show(d tidegate.Decision) string {
	return fmt.Sprintf("admitted %t, soft %t, never %t, after %s, %d left, err %v", d.OK, d.Soft, d.Never, d.RetryAfter, d.Remaining, d.Err)
}
