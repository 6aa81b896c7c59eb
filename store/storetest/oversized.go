package storetest

import "math"

// testOversized: a cost above the capacity can never fit. It is refused at once
// and leaves nothing behind: not an empty bucket, not a debt of 115 days.
func testOversized(s *subject) {
	s.each(func(s *subject, k kind) {
		l, wide := k.slow("small", 5), k.slow("wide", 100)
		s.admit(check(l, "ann", 1))
		for _, cost := range []int64{6, 7, 1_000_000, math.MaxInt64/1024 + 1, math.MaxInt64} {
			if d := s.refuseForGood(check(l, "ann", cost)); d.Remaining != 4 || d.Limit != l {
				s.Errorf("cost %d of 5 = %s, want remaining 4", cost, show(d))
			}
			s.refuseForGood(check(l, "new", cost))
		}
		s.refuseForGood(check(wide, "all", 6), check(l, "ann", 6))
		s.wantLeft(100, check(wide, "all", 1))
		s.wantLeft(5, check(l, "new", 1))
		s.wantLeft(4, check(l, "ann", 1))
		s.admit(check(l, "ann", 4))
		s.admit(check(l, "new", 5))
		// Even while nothing is left, the answer is "never", not "later".
		s.refuseForGood(check(l, "ann", 6))
	})
}

// testOversizedSum: what counts is the sum of the costs on one counter, and it
// must not wrap around.
func testOversizedSum(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("sum", 5)
		s.refuseForGood(check(l, "ann", 3), check(l, "ann", 3))
		s.refuseForGood(check(l, "ann", math.MaxInt64), check(l, "ann", math.MaxInt64), check(l, "ann", 3))
		s.wantLeft(5, check(l, "ann", 1))
	})
}
