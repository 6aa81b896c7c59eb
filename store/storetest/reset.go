package storetest

import (
	"context"

	"tidegate.dev/tidegate"
)

// testReset: the keys named start afresh, and no others.
func testReset(s *subject) {
	r, ok := resetter(s.store)
	if !ok {
		return
	}
	s.each(func(s *subject, k kind) {
		l, other := k.slow("unblocked", 2), k.slow("kept", 2)
		for _, key := range []string{"ann", "bob"} {
			s.admitTimes(2, check(l, key, 1), check(other, key, 1))
		}
		f := func(checks ...tidegate.Check) {
			s.Helper()
			if err := r.Reset(context.Background(), checks); err != nil {
				s.Fatalf("Reset(%s) failed: %v", describe(checks), err)
			}
		}
		f(check(l, "ann", 1), check(l, "stranger", 1))
		f()
		s.wantLeft(0, check(other, "ann", 1))
		s.wantLeft(0, check(l, "bob", 1))
		s.admitTimes(2, check(l, "ann", 1))
		s.refuse(check(l, "ann", 1))
	})
}
