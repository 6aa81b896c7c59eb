package storetest

import (
	"context"
	"fmt"
	"math"
	"time"

	"tidegate.dev/tidegate"
)

// testMisuse: a negative cost, or no copies at all, is an error of the caller.
// It is told so, and nothing changes: a negative cost must not refill.
func testMisuse(s *subject) {
	s.each(func(s *subject, k kind) {
		l, other := k.slow("misused", 5), k.slow("beside", 5)
		s.admit(check(l, "ann", 2), check(other, "ann", 2))
		f := func(n int, checks ...tidegate.Check) {
			s.Helper()
			if d, err := s.store.Take(context.Background(), checks, n); err == nil {
				s.Errorf("Take(%s, %d) = %s, want an error", describe(checks), n, show(d))
			}
		}
		f(0, check(l, "ann", 1))
		f(-1, check(l, "ann", 1))
		f(math.MinInt, check(l, "ann", 1))
		f(1, check(l, "ann", -1))
		f(1, check(l, "ann", math.MinInt64))
		f(1, check(other, "ann", 1), check(l, "ann", -1))
		f(3, advisory(l, "ann", -1), check(other, "ann", 1))
		if r := s.reserver(); r != nil {
			checks := []tidegate.Check{check(other, "ann", 1), estimate(check(l, "ann", -1))}
			if d, err := r.Reserve(context.Background(), checks, time.Hour); err == nil || d.OK || !d.Receipt.Handle.IsZero() {
				s.Errorf("Reserve(%s) = %s; want an error", describe(checks), show(d))
			}
		}
		s.wantLeft(3, check(l, "ann", 1))
		s.wantLeft(3, check(other, "ann", 1))
	})
}

// testAccessRules: what refuses without counting is no store's to decide. It is
// told so, whatever the rest of the vector, and nothing is charged.
func testAccessRules(s *subject) {
	deny := tidegate.MustLimit(tidegate.Spec{Name: "members only", Algorithm: tidegate.Deny})
	s.each(func(s *subject, k kind) {
		l := k.slow("beside an access rule", 5)
		f := func(checks ...tidegate.Check) {
			s.Helper()
			if d, err := s.store.Take(context.Background(), checks, 1); err == nil {
				s.Errorf("Take(%s) = %s, want an error", describe(checks), show(d))
			}
			if r := s.reserver(); r != nil {
				if d, err := r.Reserve(context.Background(), checks, time.Hour); err == nil || d.OK || !d.Receipt.Handle.IsZero() {
					s.Errorf("Reserve(%s) = %s; want an error", describe(checks), show(d))
				}
			}
		}
		f(check(deny, "ann", 1))
		f(check(deny, "ann", 0))
		f(advisory(deny, "ann", 1))
		f(check(l, "ann", 1), check(deny, "ann", 1))
		f(advisory(deny, "ann", 1), check(l, "ann", 1))
		s.wantLeft(5, check(l, "ann", 1))
	})
}

// testSliceReused: the caller may overwrite its slice, and the memory that the
// keys lie in, as soon as a call returns. The race detector sees a store that
// reads it later.
func testSliceReused(s *subject) {
	a, b := kinds[0].slow("a", 50), kinds[3].slow("b", 50)
	ctx := context.Background()
	checks := make([]tidegate.Check, 2)
	var keys tidegate.Request
	fill := func(key string, cost int64) {
		key = keys.Key(key)
		checks[0], checks[1] = check(a, key, cost), check(b, key, cost)
	}
	wreck := func() {
		keys.Reset()
		checks[0] = tidegate.Check{Key: keys.Key("a wrecked one"), Cost: math.MinInt64}
		checks[1] = checks[0]
		keys.Reset()
	}
	for i := range 20 {
		key := fmt.Sprint("key ", i)
		fill(key, 3)
		d, err := s.store.Take(ctx, checks, 1)
		wreck()
		if err != nil || !d.OK {
			s.Fatalf("Take = %s, %v; want it admitted", show(d), err)
		}
		fill(key, -1)
		err = s.store.Adjust(ctx, d.Receipt, checks)
		wreck()
		if err != nil {
			s.Fatalf("Adjust failed: %v", err)
		}
		left := int64(48)
		if r := s.reserver(); r != nil {
			fill(key, 10)
			checks[0].Estimate, checks[1].Estimate = true, true
			d, err := r.Reserve(ctx, checks, time.Hour)
			wreck()
			if err != nil {
				s.Fatalf("Reserve failed: %v", err)
			}
			s.wantSettle(nil, d.Receipt, 4)
			left -= 4
		}
		s.wantLeft(left, check(a, tidegate.Key(key), 1))
		s.wantLeft(left, check(b, tidegate.Key(key), 1))
	}
}

// testCancelled: a store may answer a caller that has gone or return an error,
// but it must not panic, nor answer both ways.
func testCancelled(s *subject) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := check(kinds[0].slow("cancelled", 5), "ann", 1)
	d, err := s.store.Take(ctx, []tidegate.Check{c}, 1)
	if err != nil && d.OK {
		s.Errorf("Take = %s and error %v, want one of them", show(d), err)
	}
	_ = s.store.Adjust(ctx, d.Receipt, []tidegate.Check{check(c.Limit, "ann", -1)})
	if r := s.reserver(); r != nil {
		d, err := r.Reserve(ctx, []tidegate.Check{estimate(c)}, time.Hour)
		if err != nil && d.OK {
			s.Errorf("Reserve = %s and error %v, want one of them", show(d), err)
		}
		_ = r.Settle(ctx, d.Receipt, 0)
	}
	if s.canRenew() {
		_ = s.renew(d.Receipt, c)
	}
	if d := s.takeN(1, c); d.Remaining > 4 {
		s.Errorf("after cancelled calls Take = %s, want at most 4 left", show(d))
	}
}
