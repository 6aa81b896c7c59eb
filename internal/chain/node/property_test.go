package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Whatever is taken, given back and reset, here and on another node, and whatever limits
// are changed: what is refused from memory would have been refused by the inner store, or
// for no longer than a second has not been; and nothing passes that it has not let pass.
func TestRefusalsAreTrueOrYoung(t *testing.T) {
	var denied, untrue int
	seeds := 60
	if testdep.RaceEnabled { // which only takes time where one goroutine asks
		seeds = 15
	}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			n := newFuzzed(t, seed)
			defer n.Close()
			for range 400 {
				n.step()
			}
			denied += n.denied
			untrue += n.untrue
		})
	}
	if denied < seeds*1000/60 || untrue < seeds*20/60 {
		t.Errorf("%d refused from memory, %d of them no longer true: the test has lost its point", denied, untrue)
	}
}

// fuzzed is a Node in a fleet whose inner store others change as well.
type fuzzed struct {
	*testing.T
	*Node
	inner  *slow
	rand   *rand.Rand
	limits []*tidegate.Limit
	since  map[string]time.Time // a check has been passing since then, as far as was looked
	taken  []taking
	denied int
	untrue int
}

type taking struct {
	check tidegate.Check
	taken tidegate.Receipt
}

func newFuzzed(t *testing.T, seed uint64) *fuzzed {
	n := &fuzzed{T: t, inner: newSlow(), rand: rand.New(rand.NewPCG(seed, 7)), since: map[string]time.Time{}}
	n.Node = newNode(n.inner, Options{DenyEntries: 8}) // they meet in few places
	algorithms := []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog}
	period := time.Duration(1+n.rand.IntN(4)) * time.Second
	for _, events := range []int64{3, 5} {
		n.limits = append(n.limits, per(events, period, algorithms[seed%5]))
	}
	return n
}

func (n *fuzzed) check() tidegate.Check {
	return tidegate.Check{Key: fmt.Sprint("k", n.rand.IntN(2)), Limit: n.limits[n.rand.IntN(len(n.limits))], Cost: 1 + n.rand.Int64N(3)}
}

func (n *fuzzed) step() {
	ctx := context.Background()
	switch n.rand.IntN(10) {
	case 0: // another node gives back what this one took
		if len(n.taken) > 0 {
			one := n.taken[n.rand.IntN(len(n.taken))]
			one.check.Cost = -one.check.Cost
			n.must(n.inner.Store.Adjust(ctx, one.taken, []tidegate.Check{one.check}))
		}
	case 1: // this one does
		if len(n.taken) > 0 {
			one := n.taken[n.rand.IntN(len(n.taken))]
			one.check.Cost = -one.check.Cost
			n.must(n.Adjust(ctx, one.taken, []tidegate.Check{one.check}))
		}
	case 2: // another node resets
		if n.rand.IntN(3) == 0 {
			n.must(n.inner.Store.Reset(ctx, []tidegate.Check{n.check()}))
		}
	case 3:
		for range n.rand.IntN(30) {
			n.watch()
			time.Sleep(50 * time.Millisecond)
		}
	case 4: // another node charges
		_, err := n.inner.Store.Take(ctx, []tidegate.Check{n.check()}, 1)
		n.must(err)
	default:
		n.ask()
	}
	n.watch()
	time.Sleep(time.Duration(n.rand.IntN(40)) * time.Millisecond)
}

// watch notes what passes now.
func (n *fuzzed) watch() {
	for _, l := range n.limits {
		for _, key := range []string{"k0", "k1"} {
			for cost := range int64(3) {
				n.truth(tidegate.Check{Key: key, Limit: l, Cost: cost + 1})
			}
		}
	}
}

func (n *fuzzed) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// truth is whether a check would pass, and since when.
func (n *fuzzed) truth(c tidegate.Check) (since time.Time, passes bool) {
	id := fmt.Sprintf("%p %s %d", c.Limit, c.Key, c.Cost)
	if c.Cost > n.inner.left(n.T, c) {
		delete(n.since, id)
		return since, false
	}
	if _, ok := n.since[id]; !ok {
		n.since[id] = time.Now()
	}
	return n.since[id], true
}

// ask takes a check or two, and judges a refusal that was remembered.
func (n *fuzzed) ask() {
	checks := []tidegate.Check{n.check()}
	if n.rand.IntN(3) == 0 {
		checks = append(checks, n.check())
	}
	before := n.Node.count.denied.Load()
	var since time.Time
	for _, c := range checks {
		at, passes := n.truth(c)
		if !passes {
			since = time.Time{}
			break
		}
		if at.After(since) {
			since = at
		}
	}
	d, err := n.Take(context.Background(), checks, 1)
	n.must(err)
	if d.OK {
		for _, c := range checks {
			n.taken = append(n.taken, taking{c, d.Receipt})
		}
	}
	if n.Node.count.denied.Load() == before {
		return
	}
	n.denied++
	if d.OK || d.RetryAfter <= 0 {
		n.Errorf("from memory: %+v", d)
	}
	if since.IsZero() {
		return
	}
	n.untrue++
	if late := time.Since(since); late > maxDenial {
		n.Errorf("%v: refused from memory %s after it would pass: %+v", checks, late, d)
	}
}
