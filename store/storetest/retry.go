package storetest

import (
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// testRetryExact: a step before RetryAfter the same request is refused, at it,
// it is admitted; after histories of all sorts.
func testRetryExact(s *subject) {
	s.each(func(s *subject, k kind) {
		r := rand.New(rand.NewPCG(1, 2))
		l := k.brisk("exact", 7)
		refusals, times := 0, lessIf(s.brief, 400, 100)
		for range times {
			c := check(l, "ann", 1+r.Int64N(7)*r.Int64N(2))
			c.MaxWait = 0 // a leaky bucket with a line has its own test
			if d := s.takeN(1, c); !d.OK {
				refusals++
				s.wantRetry(d.RetryAfter, c)
			}
			// Whole steps: a store may count time in microseconds.
			s.clock.add(time.Duration(r.Int64N(int64(k.period()/3))) * time.Duration(r.IntN(2)) / step * step)
		}
		if refusals < times/8 {
			s.Errorf("only %d refusals were seen: the test has lost its point", refusals)
		}
	})
}

// wantRetry moves the clock to see that checks pass after retry, not before.
func (s *subject) wantRetry(retry time.Duration, checks ...tidegate.Check) {
	s.Helper()
	start := s.clock.now()
	if retry > step {
		s.at(start, retry-step)
		if d := s.takeN(1, checks...); d.OK {
			s.Fatalf("at %s: RetryAfter was %s, but a step earlier Take(%s) = %s",
				start.Format(time.TimeOnly), retry, describe(checks), show(d))
		}
	}
	s.at(start, retry)
	if d := s.takeN(1, checks...); !d.OK {
		s.Fatalf("at %s: RetryAfter was %s, but then Take(%s) = %s",
			start.Format(time.TimeOnly), retry, describe(checks), show(d))
	}
}

// testRetryVector: the RetryAfter of several limits is when all of them admit,
// and that of a duplicate counts both.
func testRetryVector(s *subject) {
	s.each(func(s *subject, k kind) {
		a, b := k.brisk("a", 4), k.brisk("b", 9)
		s.admit(check(a, "ann", 4), check(b, "ann", 6))
		checks := []tidegate.Check{check(a, "ann", 2), check(b, "ann", 4), check(a, "ann", 1)}
		for i := range checks {
			checks[i].MaxWait = 0
		}
		s.wantRetry(s.refuse(checks...).RetryAfter, checks...)
	})
}

// testResetAfter: after ResetAfter a key is as good as one never seen.
func testResetAfter(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.brisk("reset", 5)
		s.admit(check(l, "ann", 2))
		s.clock.add(k.period() / 4)
		d := s.admit(check(l, "ann", 3))
		if d.ResetAfter <= 0 || d.ResetAfter > 2*k.period() {
			s.Fatalf("Take = %s, want a reset within two periods", show(d))
		}
		start := s.clock.now()
		s.at(start, d.ResetAfter/2)
		if d := s.takeN(1, check(l, "ann", 0)); d.ResetAfter == 0 {
			s.Errorf("half way to the reset a peek = %s, want it still to come", show(d))
		}
		s.at(start, d.ResetAfter)
		used, fresh := s.admit(check(l, "ann", 0)), s.admit(check(l, "new", 0))
		if used.Remaining != fresh.Remaining || used.ResetAfter != 0 || fresh.ResetAfter != 0 {
			s.Errorf("after the reset a peek = %s, at a new key %s", show(used), show(fresh))
		}
	})
}
