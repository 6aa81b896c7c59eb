package storetest

// testSingle: each algorithm lets its capacity through at one instant, counts
// it down, and then refuses without charging.
func testSingle(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("single", 3)
		c := check(l, "ann", 1)
		s.wantLeft(3, c)
		for left := int64(2); left >= 0; left-- {
			if d := s.admit(c); d.Remaining != left || d.Limit != l || d.ResetAfter == 0 {
				s.Fatalf("Take = %s, want remaining %d, a reset and the limit asked for", show(d), left)
			}
		}
		for range 5 {
			if d := s.refuse(c); d.Remaining != 0 || d.Limit != l {
				s.Fatalf("Take = %s, want remaining 0 and the limit asked for", show(d))
			}
		}
		s.wantLeft(3, check(l, "bob", 1))
	})
}

// testWeighted: a cost counts as so many events, and one that does not fit
// leaves the rest to smaller ones.
func testWeighted(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("weighted", 10)
		if d := s.admit(check(l, "ann", 7)); d.Remaining != 3 {
			s.Errorf("cost 7 of 10 = %s, want remaining 3", show(d))
		}
		if d := s.refuse(check(l, "ann", 4)); d.Remaining != 3 {
			s.Errorf("cost 4 with 3 left = %s, want remaining 3", show(d))
		}
		s.admit(check(l, "ann", 3))
		s.refuse(check(l, "ann", 1))
	})
}
