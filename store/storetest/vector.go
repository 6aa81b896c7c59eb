package storetest

import "tidegate.dev/tidegate"

// testAllOrNone: when one of several checks refuses, none is charged, wherever
// in the vector it stands.
func testAllOrNone(s *subject) {
	s.each(func(s *subject, k kind) {
		tight, mid, wide := k.slow("tight", 1), k.slow("mid", 5), k.slow("wide", 9)
		s.admit(check(tight, "ann", 1))
		for _, order := range [][]*tidegate.Limit{{tight, mid, wide}, {mid, tight, wide}, {wide, mid, tight}} {
			var checks []tidegate.Check
			for _, l := range order {
				checks = append(checks, check(l, "ann", 1))
			}
			if d := s.refuse(checks...); d.Limit != tight {
				s.Errorf("refused by %s, want %s", d.Limit, tight)
			}
		}
		s.wantLeft(5, check(mid, "ann", 1))
		s.wantLeft(9, check(wide, "ann", 1))
		s.admit(check(mid, "ann", 2), check(wide, "ann", 4))
		s.wantLeft(3, check(mid, "ann", 1))
		s.wantLeft(5, check(wide, "ann", 1))
	})
}

// testWideDoesNotPay: a client that hammers its tight limit must not use up the
// wide one that all share. Others charge one by one: 5 admitted, and the wide
// counter at 30.
func testWideDoesNotPay(s *subject) {
	for _, wideKind := range s.asked.kinds() {
		for _, tightKind := range s.asked.kinds() {
			tight := tightKind.slow("tight under "+wideKind.name, 5)
			wide := wideKind.slow("wide over "+tightKind.name, 30)
			for i := range 30 {
				d := s.takeN(1, check(wide, "all", 1), check(tight, "ann", 1))
				if d.OK != (i < 5) {
					s.Fatalf("request %d of ann = %s", i+1, show(d))
				}
			}
			s.wantLeft(25, check(wide, "all", 1))
		}
	}
}

// testDuplicates: the same key and limit twice in one vector is charged twice,
// and must fit twice.
func testDuplicates(s *subject) {
	s.each(func(s *subject, k kind) {
		l, other := k.slow("twice", 5), k.slow("beside twice", 50)
		c := check(l, "ann", 1)
		s.admit(c, check(other, "ann", 1), c)
		s.wantLeft(3, c)
		s.admit(c, c)
		if d := s.refuse(c, c); d.Remaining != 1 {
			s.Errorf("two with 1 left = %s, want remaining 1", show(d))
		}
		s.admit(c)
		s.wantLeft(49, check(other, "ann", 1))
	})
}

// testEmptyVector: what nothing limits is admitted, by no limit.
func testEmptyVector(s *subject) {
	for _, n := range []int{1, 7} {
		if d := s.takeN(n); !d.OK || d.Granted != int64(n) || d.Limit != nil {
			s.Errorf("Take(no checks, %d) = %s, want all granted by no limit", n, show(d))
		}
	}
}
