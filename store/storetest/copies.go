package storetest

import "math"

// testCopies: Take grants as many whole copies as fit and charges only those.
func testCopies(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("copies", 10)
		f := func(n int, cost, granted, left int64) {
			s.Helper()
			d := s.takeN(n, check(l, "ann", cost))
			if d.Granted != granted || d.Remaining != left {
				s.Errorf("%d copies of cost %d = %s, want granted %d remaining %d", n, cost, show(d), granted, left)
			}
		}
		f(2, 1, 2, 8)
		f(5, 3, 2, 2) // two threes fit into eight
		f(1, 3, 0, 2)
		f(math.MaxInt, 1, 2, 0) // more than anybody can count
		f(3, 1, 0, 0)
	})
}

// testCopiesVector: a copy is the whole vector. The tightest check decides how
// many there are, and the others pay for those.
func testCopiesVector(s *subject) {
	s.each(func(s *subject, k kind) {
		a, b, c := k.slow("a", 100), k.slow("b", 7), k.slow("c", 20)
		d := s.takeN(50, check(a, "ann", 2), check(b, "ann", 1), check(c, "ann", 4))
		if d.Granted != 5 || d.Limit != c || d.Remaining != 0 {
			s.Errorf("50 copies = %s, want 5 granted by %s", show(d), c)
		}
		s.wantLeft(90, check(a, "ann", 1))
		s.wantLeft(2, check(b, "ann", 1))
		twice := k.slow("twice", 7)
		if d := s.takeN(9, check(twice, "ann", 1), check(twice, "ann", 1)); d.Granted != 3 {
			s.Errorf("9 copies of a pair under 7 = %s, want granted 3", show(d))
		}
		s.wantLeft(1, check(twice, "ann", 1))
	})
}

// testCopiesAdvisory: of the copies granted, an advisory check is charged those
// that it would itself have let through.
func testCopiesAdvisory(s *subject) {
	s.each(func(s *subject, k kind) {
		l, narrow, ample := k.slow("enforced", 5), k.slow("narrow", 3), k.slow("ample", 50)
		d := s.takeN(8, advisory(narrow, "ann", 1), check(l, "ann", 1), advisory(ample, "ann", 1))
		if d.Granted != 5 || d.Limit != l {
			s.Errorf("8 copies = %s, want 5 granted by %s", show(d), l)
		}
		s.wantLeft(0, check(narrow, "ann", 1))
		s.wantLeft(45, check(ample, "ann", 1))
	})
}
