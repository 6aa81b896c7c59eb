package storetest

import "tidegate.dev/tidegate"

// testReturn: what is returned soon can be used again.
func testReturn(s *subject) {
	s.each(func(s *subject, k kind) {
		l, other := k.slow("returned", 5), k.slow("beside", 5)
		first := s.admit(check(l, "ann", 3), check(other, "ann", 3))
		s.adjust(after(first.Receipt, l.Turn(1)), check(l, "ann", -2)) // all but the first
		s.wantLeft(4, check(l, "ann", 1))
		s.wantLeft(2, check(other, "ann", 1))
		s.adjust(first.Receipt, check(other, "ann", -3), check(l, "ann", -1))
		s.wantLeft(5, check(l, "ann", 1))
		s.wantLeft(5, check(other, "ann", 1))
		s.admitTimes(5, check(l, "ann", 1))
		s.refuse(check(l, "ann", 1))
	})
}

// testReturnTooMuch: returning more than was taken, or to a key that took
// nothing, makes no one richer than new.
func testReturnTooMuch(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("returned", 5)
		d := s.admit(check(l, "ann", 1))
		s.adjust(d.Receipt, check(l, "ann", -100), check(l, "stranger", -100))
		s.adjust(d.Receipt, check(l, "ann", -1), check(l, "ann", 0))
		for _, key := range []string{"ann", "stranger"} {
			s.wantLeft(5, check(l, key, 1))
			s.admitTimes(5, check(l, key, 1))
			s.refuse(check(l, key, 1))
		}
	})
}

// testReturnLatest: without the receipt of a charge, what was charged last is returned, as far
// as it still counts, but no turn that somebody may wait for.
func testReturnLatest(s *subject) {
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency {
			return // a slot is named by its receipt
		}
		l := k.slow("latest", 5)
		s.admit(check(l, "ann", 1))
		s.clock.add(k.period() / 1000)
		s.admit(check(l, "ann", 2))
		s.clock.add(k.period() / 1000)
		d := s.admit(check(l, "ann", 1))
		s.clock.add(k.period() / 1000)
		left := s.takeN(1, check(l, "ann", 0)).Remaining
		s.adjust(d.Receipt.Latest(), check(l, "ann", -2), check(l, "stranger", -2))
		if k.spec.Algorithm == tidegate.LeakyBucket {
			s.wantLeft(left, check(l, "ann", 1))
			return
		}
		s.wantLeft(min(5, left+2), check(l, "ann", 1))
		s.adjust(d.Receipt.Latest(), check(l, "ann", -100))
		for _, key := range []string{"ann", "stranger"} {
			s.wantLeft(5, check(l, key, 1))
			s.admitTimes(5, check(l, key, 1))
			s.refuse(check(l, key, 1))
		}
	})
}

// testForce: a forced charge is not asked, and shows at once.
func testForce(s *subject) {
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency {
			return // a slot is held by somebody, so none can be forced on a key
		}
		l := k.slow("forced", 5)
		d := s.admit(check(l, "ann", 1))
		s.adjust(d.Receipt, check(l, "ann", 2))
		s.wantLeft(2, check(l, "ann", 1))
		s.adjust(d.Receipt, check(l, "ann", 1_000_000), check(l, "new", 3))
		s.wantLeft(0, check(l, "ann", 1))
		s.wantLeft(2, check(l, "new", 1))
	})
}

// testReturnLands: after a time that makes the key as good as new, there is
// nothing left to return, and what others took since stays taken.
func testReturnLands(s *subject) {
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency {
			return // a lease that has ended is gone; see testSlotLost
		}
		l := k.brisk("landing", 5)
		old := s.admit(check(l, "ann", 5))
		s.clock.add(2*old.ResetAfter + k.period())
		s.admit(check(l, "ann", 5))
		s.adjust(old.Receipt, check(l, "ann", -5))
		s.wantLeft(0, check(l, "ann", 1))
	})
}

// testDebt: forced charges make a debt of at most one capacity, whatever they
// come to, so that the key is whole again within twice its period.
func testDebt(s *subject) {
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency {
			return
		}
		l := k.brisk("debt", 4)
		d := s.admit(check(l, "ann", 4))
		for range 3 {
			s.adjust(d.Receipt, check(l, "ann", 1<<50))
		}
		if d := s.refuse(check(l, "ann", 1)); d.Remaining != 0 || d.RetryAfter > 2*k.period() {
			s.Errorf("in debt = %s, want a retry within two periods", show(d))
		}
		start := s.clock.now()
		s.at(start, 2*k.period()+k.period()/6)
		s.wantLeft(4, check(l, "ann", 1))
	})
}

// testDebtIsSeen: what is charged beyond a limit comes to one capacity, no more and no less:
// so much is used under a larger limit of the same counter.
func testDebtIsSeen(s *subject) {
	s.each(func(s *subject, k kind) {
		if k.spec.Algorithm == tidegate.Concurrency || k.spec.Algorithm == tidegate.LeakyBucket { // turns have no debt
			return
		}
		small, large := k.brisk("debt seen", 4), k.brisk("debt seen", 9)
		d := s.admit(check(small, "ann", 4))
		for range 3 {
			s.adjust(d.Receipt, check(small, "ann", 1<<50))
		}
		s.wantLeft(1, check(large, "ann", 1))
	})
}
