package redis

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// resolutions are ways to count the same that share a counter.
func resolutions(r *rand.Rand, name string, period time.Duration) *tidegate.Limit {
	s := tidegate.Spec{Name: name, Events: 5 + r.Int64N(60), Period: period}
	switch r.IntN(3) {
	case 0:
		s.Algorithm = tidegate.SlidingLog
	case 1:
		s.Algorithm, s.Parts = tidegate.SubWindows, []int{10, 12, 60}[r.IntN(3)]
	case 2:
		s.Algorithm, s.Parts, s.Ceiling = tidegate.SubWindows, []int{10, 25, 60}[r.IntN(3)], true
	}
	return tidegate.MustLimit(s)
}

// Two nodes hold one counter to limits of different numbers and resolutions, which change
// all the time. No more pass in a window, less a part of it, than the largest of the
// limits admits; and whoever has used less than its limit in a window and a part more is
// admitted.
func TestTrapResolutionRefillsNobody(t *testing.T) {
	testdep.SkipUnderRace(t)
	t.Parallel()
	server := testdep.Redis(t)
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	var nodes [2]*Store
	for i := range nodes {
		s, err := Open(Config{Addrs: []string{server.Socket}, Deadline: patient, pretend: clock})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		nodes[i] = s
	}
	const period = time.Minute
	const part = period / 10
	ctx := context.Background()
	edits := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		name := fmt.Sprint("edited", seed)
		inForce := []*tidegate.Limit{resolutions(r, name, period), resolutions(r, name, period)}
		type span struct {
			from time.Time
			most int64
		}
		most := func() int64 { return max(inForce[0].Events, inForce[1].Events) }
		spans := []span{{now, most()}}
		var charged, admitted []time.Time // admitted is without what was given back, which need not land
		within := func(all []time.Time, d time.Duration) (n int64) {
			for i := len(all) - 1; i >= 0 && now.Sub(all[i]) < d; i-- {
				n++
			}
			return n
		}
		for range 1500 {
			now = now.Add(time.Duration(r.Int64N(int64(800 * time.Millisecond))).Truncate(time.Microsecond))
			if r.IntN(400) == 0 {
				now = now.Add(2 * period)
			}
			if r.IntN(15) == 0 {
				inForce[r.IntN(2)] = resolutions(r, name, period)
				spans = append(spans, span{now, most()})
				edits++
			}
			node := r.IntN(2)
			checks := []tidegate.Check{{Key: "ann", Limit: inForce[node], Cost: 1}}
			var d tidegate.Decision
			var err error
			if r.IntN(2) == 0 {
				d, err = nodes[node].Take(ctx, checks, 1)
			} else {
				asks := []chain.Ask{{Checks: checks, Copies: 1}}
				err = cmp.Or(in(nodes[node]).TakeBatch(ctx, asks), asks[0].Err)
				d = asks[0].Granted
			}
			if err != nil {
				t.Fatal(err)
			}
			before := within(charged, period+part)
			if d.OK {
				charged = append(charged, now)
				if r.IntN(20) > 0 {
					admitted = append(admitted, now)
				} else {
					checks[0].Cost = -1
					if err := nodes[1-node].Adjust(ctx, d.Receipt, checks); err != nil {
						t.Fatal(err)
					}
				}
			} else if before < inForce[node].Events {
				t.Fatalf("seed %d: refused by %s with %d used in a window and a part more", seed, inForce[node], before)
			}
			largest := int64(0)
			for i, s := range spans {
				if i+1 == len(spans) || now.Sub(spans[i+1].from) < period {
					largest = max(largest, s.most)
				}
			}
			if n := within(admitted, period-part); n > largest {
				t.Fatalf("seed %d: %d admitted in a window less a part, under limits of at most %d", seed, n, largest)
			}
			if !d.OK && (d.RetryAfter <= 0 || d.RetryAfter > period+part) {
				t.Fatalf("seed %d: retry after %s", seed, d.RetryAfter)
			}
		}
	}
	if edits < 500 {
		t.Errorf("%d edits: the test has lost its point", edits)
	}
}

// Raising a limit past the number at which the default algorithm changes, and lowering it
// again, keeps what was used.
func TestRaisedPastTheDefault(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Socket}, pretend: func() time.Time { return now }})
	f := func(events int64, ask int, want int64) {
		t.Helper()
		l := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: events, Period: time.Minute})
		if d := mustTake(t, s, ask, tidegate.Check{Key: "ann", Limit: l, Cost: 1}); d.Granted != want {
			t.Errorf("%d of %d granted by %s, want %d", d.Granted, ask, l, want)
		}
	}
	f(60, 50, 50)
	f(100, 200, 50) // stamps become counts
	f(60, 1, 0)     // and are not forgotten
	f(120, 200, 20)
	now = now.Add(62 * time.Second)
	f(60, 100, 60) // a log again
	f(60, 1, 0)
	f(100, 100, 40)
}

// Reset forgets the counter, whichever way it is kept.
func TestResetOfEitherKind(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Socket}})
	small := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 60, Period: time.Minute})
	large := tidegate.MustLimit(tidegate.Spec{Name: "api", Events: 100, Period: time.Minute})
	for _, begun := range []*tidegate.Limit{small, large} {
		for _, by := range []*tidegate.Limit{small, large} {
			mustTake(t, s, 60, tidegate.Check{Key: "ann", Limit: begun, Cost: 1})
			if err := s.Reset(context.Background(), []tidegate.Check{{Key: "ann", Limit: by}}); err != nil {
				t.Fatal(err)
			}
			for _, l := range []*tidegate.Limit{small, large} {
				if got := left(t, s, tidegate.Check{Key: "ann", Limit: l}); got != l.Events {
					t.Errorf("begun as %s, reset as %s: %d left of %s", begun, by, got, l)
				}
			}
		}
	}
}
