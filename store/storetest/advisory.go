package storetest

// testAdvisoryCharged: an advisory check counts what is admitted, so that its
// numbers are those it would have when enforced.
func testAdvisoryCharged(s *subject) {
	s.each(func(s *subject, k kind) {
		l, shadow := k.slow("enforced", 5), k.slow("shadow", 3)
		for range 2 {
			s.admit(advisory(shadow, "ann", 1), check(l, "ann", 1))
		}
		s.wantLeft(3, check(l, "ann", 1))
		s.wantLeft(1, check(shadow, "ann", 1))
	})
}

// testAdvisoryNeverDecides: an exhausted advisory check prevents nothing, is
// not charged any further, and the Decision is about the enforcing limit.
func testAdvisoryNeverDecides(s *subject) {
	s.each(func(s *subject, k kind) {
		l, shadow := k.slow("enforced", 5), k.slow("shadow", 2)
		for i := range 5 {
			d := s.admit(check(l, "ann", 1), advisory(shadow, "ann", 1))
			if d.Limit != l || d.Remaining != int64(4-i) {
				s.Errorf("request %d = %s, want it decided by %s", i+1, show(d), l)
			}
		}
		s.wantLeft(0, check(shadow, "ann", 1))
		if d := s.refuse(advisory(shadow, "ann", 1), check(l, "ann", 1)); d.Limit != l {
			s.Errorf("refused by %s, want %s", d.Limit, l)
		}
		// One that can never fit is advice like any other.
		other := k.slow("enforced beside never", 5)
		s.admit(check(other, "ann", 5), advisory(shadow, "bob", 5))
		s.wantLeft(2, check(shadow, "bob", 1))
	})
}

// testAdvisoryRefusal: what is refused is not charged to advisory checks.
func testAdvisoryRefusal(s *subject) {
	s.each(func(s *subject, k kind) {
		l, shadow := k.slow("enforced", 1), k.slow("shadow", 3)
		s.admit(check(l, "ann", 1))
		for range 5 {
			s.refuse(advisory(shadow, "ann", 1), check(l, "ann", 1))
		}
		s.wantLeft(3, check(shadow, "ann", 1))
	})
}

// testAdvisoryAlone: with nothing but advice, everything passes, by no limit.
func testAdvisoryAlone(s *subject) {
	s.each(func(s *subject, k kind) {
		shadow := k.slow("shadow", 2)
		for i := range 4 {
			if d := s.admit(advisory(shadow, "ann", 1)); d.Limit != nil {
				s.Errorf("request %d = %s, want no limit to have decided", i+1, show(d))
			}
		}
		s.wantLeft(0, check(shadow, "ann", 1))
	})
}
