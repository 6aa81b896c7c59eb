package storetest

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// subject is a store under test, with the words that behaviours are told in.
type subject struct {
	*testing.T
	store tidegate.Store
	clock *clock // nil when the store's clock cannot be set
	asked scope
	brief bool // few histories are enough
}

// each runs f as a subtest per algorithm that is asked, on the same store.
func (s *subject) each(f func(s *subject, k kind)) {
	for _, k := range s.asked.kinds() {
		s.Run(k.name, func(t *testing.T) {
			f(&subject{T: t, store: inSubtest(t, s.store), clock: s.clock, asked: s.asked, brief: s.brief}, k)
		})
	}
}

// takeN is Take of n copies; a store that cannot answer ends the test.
func (s *subject) takeN(n int, checks ...tidegate.Check) tidegate.Decision {
	s.Helper()
	d, err := s.store.Take(context.Background(), checks, n)
	if err != nil {
		s.Fatalf("Take(%s, %d) failed: %v", describe(checks), n, err)
	}
	if d.OK != (d.Granted > 0) {
		s.Errorf("Take(%s, %d) says OK %t and Granted %d: OK means Granted > 0", describe(checks), n, d.OK, d.Granted)
	}
	if d.OK && d.RetryAfter != 0 || !d.OK && d.Wait != 0 {
		s.Errorf("Take(%s, %d) = %s, want a retry for refusals and a wait for admissions only", describe(checks), n, show(d))
	}
	if d.Remaining < 0 || d.RetryAfter < 0 || d.ResetAfter < 0 || d.Wait < 0 {
		s.Errorf("Take(%s, %d) has a negative number: %s", describe(checks), n, show(d))
	}
	return d
}

// admit takes one copy, which must be granted.
func (s *subject) admit(checks ...tidegate.Check) tidegate.Decision {
	s.Helper()
	d := s.takeN(1, checks...)
	if !d.OK || d.Granted != 1 || d.Never || d.RetryAfter != 0 {
		s.Fatalf("Take(%s) = %s, want it admitted", describe(checks), show(d))
	}
	return d
}

// admitTimes calls admit many times.
func (s *subject) admitTimes(times int, checks ...tidegate.Check) (last tidegate.Decision) {
	s.Helper()
	for range times {
		last = s.admit(checks...)
	}
	return last
}

// refuse takes one copy, which must be refused with a time to come back.
func (s *subject) refuse(checks ...tidegate.Check) tidegate.Decision {
	s.Helper()
	d := s.takeN(1, checks...)
	if d.OK || d.Never || d.Limit == nil || d.RetryAfter == 0 {
		s.Fatalf("Take(%s) = %s, want it refused with a limit and a RetryAfter", describe(checks), show(d))
	}
	return d
}

// refuseForGood takes one copy, which must be refused as never fitting.
func (s *subject) refuseForGood(checks ...tidegate.Check) tidegate.Decision {
	s.Helper()
	d := s.takeN(1, checks...)
	if d.OK || !d.Never || d.RetryAfter != 0 {
		s.Fatalf("Take(%s) = %s, want it refused as Never and without a RetryAfter", describe(checks), show(d))
	}
	return d
}

// wantLeft peeks and compares what remains.
func (s *subject) wantLeft(want int64, c tidegate.Check) {
	s.Helper()
	c.Cost = 0
	d := s.takeN(1, c)
	if d.Remaining != want || d.OK != (want > 0) {
		s.Errorf("peek at key %q of %s = %s, want remaining %d", c.Key, c.Limit, show(d), want)
	}
}

// adjust charges unasked or returns.
func (s *subject) adjust(r tidegate.Receipt, checks ...tidegate.Check) {
	s.Helper()
	if err := s.store.Adjust(context.Background(), r, checks); err != nil {
		s.Fatalf("Adjust(%s) failed: %v", describe(checks), err)
	}
}

// at moves the clock by d from start.
func (s *subject) at(start time.Time, d time.Duration) { s.clock.set(start.Add(d)) }
