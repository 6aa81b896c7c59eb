package storetest

// testPeek: a cost of 0 charges nothing and answers as a cost of 1 would.
func testPeek(s *subject) {
	s.each(func(s *subject, k kind) {
		l, beside := k.slow("peeked", 2), k.slow("beside", 2)
		peek, one := check(l, "ann", 0), check(l, "ann", 1)
		for range 5 {
			if d := s.admit(peek); d.Remaining != 2 || d.ResetAfter != 0 {
				s.Fatalf("peek at a new key = %s, want remaining 2 and nothing to reset", show(d))
			}
		}
		s.admitTimes(2, one)
		if d := s.refuse(peek); d.Remaining != 0 || d.Limit != l {
			s.Errorf("peek at a used-up key = %s, want remaining 0", show(d))
		}
		// A peek decides like any other check, and the rest pays only if it passes.
		s.refuse(peek, check(beside, "ann", 1))
		s.wantLeft(2, check(beside, "ann", 1))
		s.admit(check(l, "bob", 0), check(beside, "bob", 1))
		s.wantLeft(2, check(l, "bob", 1))
		s.wantLeft(1, check(beside, "bob", 1))
	})
}
