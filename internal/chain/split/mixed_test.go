package split

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

// below is a store of others that can be told to refuse, to fail, or to grant less.
type below struct {
	chain.Backend
	refuse, fail bool
	most         int
	took         int // how often it was asked about a limit that does not count what is refused
}

func (b *below) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if slices.ContainsFunc(checks, func(c tidegate.Check) bool { return !c.Limit.CountRejected }) {
		b.took++
	}
	switch {
	case b.fail:
		return tidegate.Decision{}, errors.New("the store is on fire")
	case b.refuse:
		return tidegate.Decision{Limit: checks[0].Limit, RetryAfter: time.Hour}, nil
	}
	if b.most > 0 {
		n = min(n, b.most)
	}
	return b.Backend.Take(ctx, checks, n)
}

func (b *below) Reserve(ctx context.Context, checks []tidegate.Check, ttl time.Duration) (tidegate.Decision, error) {
	if b.fail || b.refuse {
		return b.Take(ctx, checks, 1)
	}
	return b.Backend.Reserve(ctx, checks, ttl)
}

// ctx is of tests that nobody ends.
var ctx = context.Background()

// noon is when nothing ends soon.
func noon() time.Time { return time.Date(2027, 3, 3, 12, 30, 0, 0, time.UTC) }

// still is a memory store at noon.
func still() *memory.Store { return memory.Open(memory.Config{Now: noon}) }

// everySplit calls f for every algorithm that can be split, with its limits of so many events.
func everySplit(t *testing.T, f func(t *testing.T, l func(name string, events int64) *tidegate.Limit)) {
	for _, spec := range []tidegate.Spec{
		{Algorithm: tidegate.TokenBucket, Period: time.Hour},
		{Algorithm: tidegate.FixedWindow, Period: time.Hour},
		{Algorithm: tidegate.Quota, Calendar: tidegate.Day},
	} {
		t.Run(spec.Algorithm.String(), func(t *testing.T) {
			f(t, func(name string, events int64) *tidegate.Limit {
				spec.Name, spec.Events = name, events
				return limitOf(spec)
			})
		})
	}
}

// What the shares granted is given back to the last event if the store below refuses, fails or
// grants less, for any number of instances, cost, and copies.
func TestPutBackIsExact(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		for seed := range uint64(300 / thin) {
			random := rand.New(rand.NewPCG(seed, 3))
			now := time.Unix(1.8e9, 0).Add(time.Duration(random.Int64N(int64(time.Hour))))
			n := 1 + random.IntN(20)
			rank := random.IntN(n)
			b := &below{Backend: chain.Adapt(memory.Open(memory.Config{Now: func() time.Time { return now }}))}
			s := New(b, Options{Now: func() time.Time { return now }, Members: func() (int, int) { return n, rank }, LocalBytes: 1 << 20})
			l, wide := limit("a", 1+random.Int64N(1000)), limit("b", 100_000)
			other := tidegate.MustLimit(tidegate.Spec{Name: "c", Events: 1000, Period: time.Hour, Algorithm: tidegate.SlidingWindow})
			checks := func(cost int64) []tidegate.Check {
				return []tidegate.Check{
					{Key: "k", Limit: l, Cost: cost},
					{Key: "k", Limit: other, Cost: 1},
					{Key: "k", Limit: wide, Cost: cost, Advisory: true},
				}
			}
			state := func() string {
				text := ""
				for _, l := range []*tidegate.Limit{l, wide} {
					d, err := s.local.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1)
					text += fmt.Sprint(d.Remaining, d.ResetAfter, err, " ")
				}
				return text
			}
			for range 20 {
				now = now.Add(time.Duration(random.Int64N(int64(time.Second))))
				cost, copies := 1+random.Int64N(max(1, l.Events/int64(n))+2), 1+random.IntN(4)
				was := state()
				b.refuse, b.fail, b.most = false, false, 0
				switch random.IntN(4) {
				case 0:
					b.refuse = true
				case 1:
					b.fail = true
				case 2:
					b.most = 1
				}
				all := checks(cost)
				d, err := s.Take(ctx, all, copies)
				if (b.refuse || b.fail || err != nil || !d.OK) && state() != was {
					t.Fatalf("seed %d, %s, cost %d, %d instances: %s before, %s after %+v, %v", seed, l, cost, n, was, state(), d, err)
				}
				if err != nil || !d.OK {
					continue
				}
				if b.most > 0 && d.Granted != 1 {
					t.Fatalf("granted %d of %d", d.Granted, b.most)
				}
				// Whoever takes everything back has what was before.
				if random.IntN(2) == 0 {
					for i := range all {
						if all[i].Cost *= -d.Granted; all[i].Over {
							all[i].Cost = 0
						}
					}
					turns := cost*int64(n) > l.Capacity() && l.Algorithm == tidegate.TokenBucket
					if err := s.Adjust(ctx, d.Receipt, all); err != nil || state() != was && !turns {
						t.Fatalf("seed %d, %s, cost %d, %d instances: %s before, %s after all was returned, %v", seed, l, cost, n, was, state(), err)
					}
				}
			}
		}
	})
}

// If the shares refuse, the store below is not asked, and only those of its limits that count
// what is refused hear of it.
func TestRefusedByShares(t *testing.T) {
	everySplit(t, func(t *testing.T, limit func(string, int64) *tidegate.Limit) {
		inner := still()
		b := &below{Backend: chain.Adapt(inner)}
		s := New(b, Options{Now: noon, Members: func() (int, int) { return 2, 0 }})
		l := limit("a", 4)
		counting := tidegate.MustLimit(tidegate.Spec{Name: "all", Events: 100, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
		plain := tidegate.MustLimit(tidegate.Spec{Name: "some", Events: 100, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})
		for i := range 5 {
			d, err := s.Take(ctx, []tidegate.Check{{Key: "k", Limit: plain, Cost: 1}, {Key: "k", Limit: l, Cost: 1}, {Key: "k", Limit: counting, Cost: 1}}, 1)
			if err != nil || d.OK != (i < 2) || !d.OK && (d.Limit != l || d.RetryAfter <= 0 || d.Receipt.Origin != tidegate.OriginSplit) {
				t.Errorf("%d: %+v, %v", i, d, err)
			}
		}
		for l, want := range map[*tidegate.Limit]int64{counting: 95, plain: 98} {
			if d, _ := inner.Take(ctx, []tidegate.Check{{Key: "k", Limit: l}}, 1); d.Remaining != want {
				t.Errorf("%s: %d left, want %d", l, d.Remaining, want)
			}
		}
		if b.took != 2 {
			t.Errorf("the store below was asked %d times about limits that do not count what is refused", b.took)
		}
	})
}

// Over one store that has all limits, a log that counts rejected requests counts each request once, also one that is
// booked into a later turn, and one that is refused as it is not this instance's turn.
func TestRejectedRequestsCountOnceBesideTurns(t *testing.T) {
	now := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	local := memory.Open(memory.Config{MaxBytes: 1 << 20, Now: clock})
	s := New(chain.Adapt(local), Options{Local: local, Whole: true, Now: clock, Members: func() (int, int) { return 5, 0 }})
	l := limitOf(tidegate.Spec{Name: "api", Algorithm: tidegate.TokenBucket, Events: 3, Period: time.Second})
	log := tidegate.MustLimit(tidegate.Spec{Name: "log", Algorithm: tidegate.SlidingLog, Events: 100, Period: time.Hour, CountRejected: true})
	admitted, booked := 0, 0
	for i := range 40 {
		checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 1, MaxWait: time.Duration(i%2) * 5 * time.Second}, {Key: "k", Limit: log, Cost: 1}}
		d, err := s.Take(t.Context(), checks, 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.OK {
			admitted++
		}
		if d.Wait > 0 {
			booked++
		}
		if d, err := s.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: log}}, 1); err != nil || 100-d.Remaining != int64(i+1) {
			t.Fatalf("%d counted of %d requests, %v", 100-d.Remaining, i+1, err)
		}
		now = now.Add(190 * time.Millisecond)
	}
	if admitted == booked || booked == 0 || admitted == 40 {
		t.Errorf("%d admitted, %d of them booked ahead: want some of each kind", admitted, booked)
	}
}

// A request of a class that has to leave something of a log that counts rejected requests counts there up to that,
// whoever refuses it: shares out of turn, shares that are used up, or a limit below.
func TestRejectedRequestsCountUpToTheFloor(t *testing.T) {
	now := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	log := tidegate.MustLimit(tidegate.Spec{Name: "log", Algorithm: tidegate.SlidingLog, Events: 20, Period: 100 * time.Hour, CountRejected: true})
	for _, whole := range []bool{true, false} {
		for _, n := range []int{1, 2, 5} {
			for _, cost := range []int64{1, 2} {
				local := memory.Open(memory.Config{MaxBytes: 1 << 20, Now: clock})
				below := local
				if !whole {
					below = memory.Open(memory.Config{MaxBytes: 1 << 20, Now: clock})
				}
				s := New(chain.Adapt(below), Options{Local: local, Whole: whole, Now: clock, Members: func() (int, int) { return n, 0 }})
				l := limitOf(tidegate.Spec{Name: "api", Algorithm: tidegate.TokenBucket, Events: 3, Period: time.Hour})
				for range 60 {
					checks := []tidegate.Check{{Key: "k", Limit: l, Cost: 1}, {Key: "k", Limit: log, Cost: cost, Floor: 10}}
					if _, err := s.Take(t.Context(), checks, 1); err != nil {
						t.Fatal(err)
					}
					now = now.Add(time.Minute)
				}
				if d, err := s.Take(t.Context(), []tidegate.Check{{Key: "k", Limit: log}}, 1); err != nil || d.Remaining != 10 {
					t.Errorf("one store %t, %d instances, cost %d: %d left of the log, want the floor of 10; %v", whole, n, cost, d.Remaining, err)
				}
			}
		}
	}
}
