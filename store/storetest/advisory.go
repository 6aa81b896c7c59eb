package storetest

import (
	"context"
	"time"

	"tidegate.dev/tidegate"
)

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

// wantOver compares Over of every check.
func (s *subject) wantOver(checks []tidegate.Check, want ...bool) {
	s.Helper()
	for i := range checks {
		if checks[i].Over != want[i] {
			s.Errorf("Over of check %d in %s is %t, want %t", i, describe(checks), checks[i].Over, want[i])
		}
	}
}

// testAdvisoryOver: an advisory check that had no room for an admitted request
// says so, each time anew.
func testAdvisoryOver(s *subject) {
	s.each(func(s *subject, k kind) {
		l, narrow, ample := k.slow("enforced", 9), k.slow("narrow", 2), k.slow("ample", 9)
		checks := []tidegate.Check{advisory(narrow, "ann", 1), check(l, "ann", 1), advisory(ample, "ann", 1)}
		for i := range 4 {
			s.admit(checks...)
			s.wantOver(checks, i >= 2, false, false)
		}
		checks[0].Key = "bob" // what the same memory said before is forgotten
		s.admit(checks...)
		s.wantOver(checks, false, false, false)
		checks[0].Cost = 3 // can never fit
		s.admit(checks...)
		s.wantOver(checks, true, false, false)
		peeks := []tidegate.Check{advisory(narrow, "ann", 0), advisory(ample, "ann", 0)}
		s.admit(peeks...)
		s.wantOver(peeks, true, false)
	})
}

// testAdvisoryOverInCopies: an advisory check is over if it has no room for all copies that
// were granted.
func testAdvisoryOverInCopies(s *subject) {
	s.each(func(s *subject, k kind) {
		l, narrow, ample := k.slow("enforced", 5), k.slow("narrow", 3), k.slow("ample", 5)
		checks := []tidegate.Check{advisory(ample, "ann", 1), advisory(narrow, "ann", 1), check(l, "ann", 1)}
		if d := s.takeN(8, checks...); d.Granted != 5 {
			s.Errorf("8 copies = %s, want 5 granted", show(d))
		}
		s.wantOver(checks, false, true, false)
	})
}

// testAdvisoryOverReserved: a reservation tells the same as Take.
func testAdvisoryOverReserved(s *subject) {
	if s.reserver() == nil {
		return
	}
	l, narrow, ample := kinds[3].slow("tokens", 100), kinds[0].slow("narrow", 20), kinds[3].slow("ample", 100)
	checks := []tidegate.Check{
		estimate(check(l, "ann", 15)), estimate(advisory(narrow, "ann", 15)), estimate(advisory(ample, "ann", 15)),
	}
	for i := range 2 {
		if d, err := s.reserver().Reserve(context.Background(), checks, time.Hour); err != nil || !d.OK {
			s.Fatalf("Reserve(%s) = %s, %v; want it granted", describe(checks), show(d), err)
		}
		s.wantOver(checks, false, i > 0, false)
	}
}
