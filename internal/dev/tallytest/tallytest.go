// Package tallytest is the suite of every [chain.Tallies]. Start with [Run].
package tallytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// Run tests tallies, whose clock is a real one. Keys begin with a prefix that nobody else uses.
func Run(t *testing.T, open func(t *testing.T) chain.Tallies) {
	t.Run("AddsUp", func(t *testing.T) { addsUp(t, open(t)) })
	t.Run("OldCopies", func(t *testing.T) { oldCopies(t, open(t)) })
	t.Run("Demand", func(t *testing.T) { demand(t, open(t)) })
	t.Run("Reset", func(t *testing.T) { reset(t, open(t)) })
	t.Run("Over", func(t *testing.T) { over(t, open(t)) })
	t.Run("Many", func(t *testing.T) { many(t, open(t)) })
}

var limit = tidegate.MustLimit(tidegate.Spec{
	Name: "tally", Scope: "user", Events: 100, Period: time.Hour, Algorithm: tidegate.SubWindows,
	Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}},
})

// bench is a counter that a test uses.
type bench struct {
	t     *testing.T
	in    chain.Tallies
	key   string
	start int64 // of the first part
}

func newBench(t *testing.T, in chain.Tallies) *bench {
	t.Helper()
	now, err := in.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Since(now); off.Abs() > time.Minute {
		t.Fatalf("the clock is %s off", off)
	}
	return &bench{t: t, in: in, key: fmt.Sprint(t.Name(), "{x} ", rand.Uint64()), start: now.UnixMicro() - 1000}
}

// tally is one of an instance with counts of the parts from the first on, each a millisecond later.
func (b *bench) tally(instance, number uint64, counts ...int64) chain.Tally {
	is := chain.Tally{Limit: limit, Key: b.key, Instance: [2]uint64{instance, 7}, Number: number}
	for i, n := range counts {
		is.Parts = append(is.Parts, chain.TallyPart{Start: b.start + 1000*int64(i), End: b.start + time.Hour.Microseconds(), Count: n})
	}
	return is
}

// sends exchanges one, and wants the totals of the parts.
func (b *bench) sends(one chain.Tally, want ...int64) chain.TallyAnswer {
	b.t.Helper()
	all := []chain.Tally{one}
	if err := b.in.Exchange(context.Background(), all); err != nil || all[0].Err != nil {
		b.t.Fatal(err, all[0].Err)
	}
	got := make([]int64, len(want))
	for _, p := range all[0].Answer.Totals {
		if i := (p.Start - b.start) / 1000; i >= 0 && i < int64(len(got)) {
			got[i] += p.Count
		} else {
			b.t.Errorf("a part at %d, which nobody sent", p.Start)
		}
	}
	for i := range want {
		if got[i] != want[i] {
			b.t.Errorf("%+v: totals %d, want %d", one, got, want)
			break
		}
	}
	return all[0].Answer
}

// Counts of instances add up, whatever they send how often.
func addsUp(t *testing.T, in chain.Tallies) {
	b := newBench(t, in)
	b.sends(b.tally(1, 1, 3), 3)
	b.sends(b.tally(2, 1, 4), 7)
	b.sends(b.tally(1, 2, 5, 1), 9, 1)
	b.sends(b.tally(1, 3, 5, 1), 9, 1) // the answer was lost
	b.sends(b.tally(2, 2, 4, 2), 9, 3)
	b.sends(b.tally(2, 3, 3, 2), 8, 3) // something was given back
	b.sends(b.tally(3, 1), 8, 3)
	b.sends(b.tally(3, 2, 0, 1<<40), 8, 3+1<<40)
}

// A copy that arrives late changes nothing.
func oldCopies(t *testing.T, in chain.Tallies) {
	b := newBench(t, in)
	b.sends(b.tally(1, 1, 3), 3)
	b.sends(b.tally(1, 2, 9), 9)
	b.sends(b.tally(1, 1, 3), 9)
	b.sends(b.tally(1, 2, 4), 9)
	b.sends(b.tally(1, 3, 10), 10)
}

// Instances hear of the demand of others, while that counts.
func demand(t *testing.T, in chain.Tallies) {
	b := newBench(t, in)
	told := func(instance, number uint64, n int64, lasts time.Duration, want int64) {
		t.Helper()
		one := b.tally(instance, number)
		one.Demand, one.DemandLasts = n, lasts
		if a := b.sends(one); a.Demand != want {
			t.Errorf("instance %d hears of a demand of %d, want %d", instance, a.Demand, want)
		}
	}
	told(1, 1, 30, time.Minute, 0)
	told(2, 1, 40, time.Minute, 30)
	told(3, 1, 50, time.Minute, 70)
	told(1, 2, 10, time.Minute, 90)
	told(4, 1, 1000, 0, 100)
	told(2, 2, 0, time.Minute, 60)
}

// After a reset, counts from before are not counted again.
func reset(t *testing.T, in chain.Tallies) {
	b := newBench(t, in)
	b.sends(b.tally(1, 1, 3), 3)
	b.sends(b.tally(2, 1, 4), 7)
	forget := b.tally(9, 0)
	forget.Reset = true
	if a := b.sends(forget); a.Generation != 1 {
		t.Errorf("generation %d after a reset", a.Generation)
	}
	if a := b.sends(b.tally(1, 2, 5), 0); a.Generation != 1 {
		t.Errorf("generation %d is told to somebody who does not know it", a.Generation)
	}
	later := b.tally(11, 1, 2)
	later.Generation = 1
	b.sends(later, 2)
	lost := b.tally(12, 1, 5) // of somebody who knows of a reset that the store has lost
	lost.Generation = 6
	if a := b.sends(lost, 7); a.Generation != 6 {
		t.Errorf("generation %d, want 6", a.Generation)
	}
}

// What is over is neither counted nor told.
func over(t *testing.T, in chain.Tallies) {
	b := newBench(t, in)
	one := b.tally(1, 1, 3, 4)
	one.Parts[0].End = b.start + 1
	b.sends(one, 0, 4)
}

// As many as one exchange takes are answered each by itself.
func many(t *testing.T, in chain.Tallies) {
	b := newBench(t, in)
	all := make([]chain.Tally, chain.MaxTallies)
	for i := range all {
		all[i] = b.tally(1, 1, int64(i+1))
		all[i].Key += fmt.Sprint(i)
	}
	if err := in.Exchange(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if a := all[i].Answer; all[i].Err != nil || len(a.Totals) != 1 || a.Totals[0].Count != int64(i+1) {
			t.Fatalf("%d: %+v, %v", i, a, all[i].Err)
		}
	}
}
