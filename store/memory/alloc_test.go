//go:build !race

package memory

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// No decision allocates, whatever the algorithm, admitted or refused, alone or
// in a vector.
func TestDecisionsAllocateNothing(t *testing.T) {
	ctx := context.Background()
	for _, l := range append(everyAlgorithm(), tidegate.Slots(5, time.Hour)) {
		for _, n := range []int{1, 3} {
			s := New()
			checks := make([]tidegate.Check, n)
			for i := range checks {
				checks[i] = tidegate.Check{Key: string(rune('a' + i)), Limit: l, Cost: 1, Advisory: i == 2}
			}
			for range 6 { // into the refusals
				if _, err := s.Take(ctx, checks, 1); err != nil {
					t.Fatal(err)
				}
			}
			if a := testing.AllocsPerRun(100, func() { _, _ = s.Take(ctx, checks, 1) }); a != 0 {
				t.Errorf("%s, refused, %d checks: %v allocations", l.Algorithm, n, a)
			}
		}
		if l.Algorithm == tidegate.Concurrency {
			continue
		}
		wide := l.Spec
		wide.Events, wide.Burst = 10_000, 0
		if l.Algorithm == tidegate.LeakyBucket {
			wide.Burst = 9_999
		}
		s, large := New(), tidegate.MustLimit(wide)
		checks := []tidegate.Check{
			{Key: "a", Limit: large, Cost: 1, MaxWait: farAhead},
			{Key: "b", Limit: large, Cost: 1, MaxWait: farAhead},
		}
		take := func(some []tidegate.Check) func() {
			return func() {
				if d, err := s.Take(ctx, some, 1); err != nil || !d.OK {
					t.Fatalf("%s: %+v (%v)", l.Algorithm, d, err)
				}
			}
		}
		for range 100 { // records grow now and then, which is no decision's doing
			take(checks)()
		}
		for n := 1; n <= 2; n++ {
			if a := testing.AllocsPerRun(200, take(checks[:n])); a != 0 {
				t.Errorf("%s, admitted, %d checks: %v allocations", l.Algorithm, n, a)
			}
		}
		checks[0].Advisory, checks[0].Limit = true, l // over
		if a := testing.AllocsPerRun(200, take(checks)); a != 0 || !checks[0].Over {
			t.Errorf("%s, admitted over advice: %v allocations, over %t", l.Algorithm, a, checks[0].Over)
		}
	}
}
