package storetest

import (
	"context"
	"errors"
	"time"

	"tidegate.dev/tidegate"
)

// reserver gives the store's reservations, or nil when it has none.
func (s *subject) reserver() tidegate.Reserver {
	r, _ := reserver(s.store)
	return r
}

func estimate(c tidegate.Check) tidegate.Check {
	c.Estimate = true
	return c
}

// reserve must be granted, with a handle. What it returns is what is left of the receipt
// when it was handed on as text.
func (s *subject) reserve(ttl time.Duration, checks ...tidegate.Check) tidegate.Receipt {
	s.Helper()
	if g, ok := s.store.(*partialStore); ok {
		g.need(partsOf(checks, 1)...)
	}
	d, err := s.reserver().Reserve(context.Background(), checks, ttl)
	if err != nil || !d.OK || d.Receipt.Handle.IsZero() {
		s.Fatalf("Reserve(%s) = %s, handle %s, error %v; want it granted with a handle", describe(checks), show(d), d.Receipt.Handle, err)
	}
	var handedOn tidegate.Receipt
	text, err := d.Receipt.MarshalText()
	if err == nil {
		err = handedOn.UnmarshalText(text)
	}
	if err != nil {
		s.Fatalf("the receipt %q of Reserve(%s) cannot be read: %v", text, describe(checks), err)
	}
	return handedOn
}

// wantSettle settles and compares the error.
func (s *subject) wantSettle(want error, r tidegate.Receipt, actual int64) {
	s.Helper()
	if err := s.reserver().Settle(context.Background(), r, actual); !errors.Is(err, want) {
		s.Errorf("Settle(%s, %d) = %v, want %v", r.Handle, actual, err, want)
	}
}

// testSettle: less than reserved is returned, more is charged unasked, and what
// is never settled stays charged.
func testSettle(s *subject) {
	if s.reserver() == nil {
		return
	}
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency {
			return
		}
		l := k.slow("tokens", 100)
		f := func(key string, actual, left int64) {
			s.Helper()
			id := s.reserve(time.Hour, estimate(check(l, key, 60)))
			s.wantLeft(40, check(l, key, 1))
			s.wantSettle(nil, id, actual)
			s.wantLeft(left, check(l, key, 1))
		}
		f("less", 37, 63)
		f("cancelled", 0, 100)
		f("as said", 60, 40)
		f("more", 75, 25)
		f("above the limit", 150, 0)
		s.reserve(time.Hour, estimate(check(l, "unsettled", 60)))
		s.wantLeft(40, check(l, "unsettled", 1))
	})
}

// testSettleOnce: a reservation is settled once; a refused one has no handle.
func testSettleOnce(s *subject) {
	if s.reserver() == nil {
		return
	}
	l := kinds[0].slow("tokens", 100)
	id := s.reserve(time.Hour, estimate(check(l, "ann", 60)))
	other := s.reserve(time.Hour, estimate(check(l, "ann", 10)))
	if id == other {
		s.Fatalf("two reservations have the handle %s", id.Handle)
	}
	s.wantSettle(nil, id, 20)
	for range 3 {
		s.wantSettle(tidegate.ErrSettled, id, 0)
	}
	s.wantLeft(70, check(l, "ann", 1))
	s.wantSettle(nil, other, 10)
	unknown := id
	unknown.Handle = tidegate.NewHandle()
	s.wantSettle(tidegate.ErrSettled, unknown, 0)
	s.wantSettle(tidegate.ErrSettled, tidegate.Receipt{}, 0)
	d, err := s.reserver().Reserve(context.Background(), []tidegate.Check{estimate(check(l, "ann", 71))}, time.Hour)
	if err != nil || d.OK || !d.Receipt.Handle.IsZero() {
		s.Errorf("Reserve beyond the limit = %s, handle %s, error %v; want it refused without a handle", show(d), d.Receipt.Handle, err)
	}
	s.wantLeft(70, check(l, "ann", 1))
}

// testParallelCalls: calls whose cost is known afterwards reserve before they
// start. Five of a hundred under a hundred: others passed 663.
func testParallelCalls(s *subject) {
	if s.reserver() == nil {
		return
	}
	l := kinds[3].slow("tokens", 100)
	var passed []tidegate.Receipt
	for range 5 {
		d, err := s.reserver().Reserve(context.Background(), []tidegate.Check{estimate(check(l, "chat", 100))}, time.Hour)
		if err != nil {
			s.Fatalf("Reserve failed: %v", err)
		}
		if d.OK {
			passed = append(passed, d.Receipt)
		}
	}
	if len(passed) != 1 {
		s.Fatalf("%d of 5 calls passed, want 1", len(passed))
	}
	s.wantSettle(nil, passed[0], 37)
	s.wantLeft(63, check(l, "chat", 1))
}

// testSettleOnlyEstimates: what was known beforehand stays as charged, and each
// estimate is replaced by the true cost.
func testSettleOnlyEstimates(s *subject) {
	if s.reserver() == nil {
		return
	}
	tokens, budget, calls := kinds[0].slow("tokens", 100), kinds[2].slow("budget", 100), kinds[3].slow("calls", 10)
	id := s.reserve(time.Hour, estimate(check(tokens, "ann", 50)), check(calls, "ann", 1), estimate(check(budget, "ann", 20)))
	s.wantSettle(nil, id, 30)
	s.wantLeft(70, check(tokens, "ann", 1))
	s.wantLeft(70, check(budget, "ann", 1))
	s.wantLeft(9, check(calls, "ann", 1))
	// Nothing estimated is nothing to settle, but still a charge.
	checks := []tidegate.Check{check(calls, "ann", 1)}
	if d, err := s.reserver().Reserve(context.Background(), checks, time.Hour); err != nil || !d.OK {
		s.Errorf("Reserve(%s) = %s, %v; want it granted", describe(checks), show(d), err)
	}
	s.wantLeft(8, check(calls, "ann", 1))
}

// testSettleAdvisory: an advisory check that would not pass was not charged, so
// there is nothing to replace.
func testSettleAdvisory(s *subject) {
	if s.reserver() == nil {
		return
	}
	l, narrow, ample := kinds[3].slow("tokens", 100), kinds[3].slow("narrow", 20), kinds[3].slow("ample", 100)
	id := s.reserve(time.Hour, estimate(check(l, "ann", 50)), estimate(advisory(narrow, "ann", 50)), estimate(advisory(ample, "ann", 50)))
	s.wantLeft(20, check(narrow, "ann", 1))
	s.wantSettle(nil, id, 10)
	s.wantLeft(90, check(l, "ann", 1))
	s.wantLeft(90, check(ample, "ann", 1))
	s.wantLeft(20, check(narrow, "ann", 1))
}

// testSettleLate: after its time a reservation is over, and stays charged.
func testSettleLate(s *subject) {
	if s.reserver() == nil {
		return
	}
	l := kinds[3].slow("tokens", 100)
	late := s.reserve(time.Minute, estimate(check(l, "ann", 60)))
	s.clock.add(time.Minute - step)
	soon := s.reserve(time.Minute, estimate(check(l, "ann", 20)))
	s.clock.add(2 * step)
	s.wantSettle(tidegate.ErrSettled, late, 0)
	s.wantLeft(20, check(l, "ann", 1))
	s.wantSettle(nil, soon, 5)
	s.wantLeft(35, check(l, "ann", 1))
}
