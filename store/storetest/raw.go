package storetest

import (
	"time"

	"tidegate.dev/tidegate"
)

// raw returns a bucket that keeps the time, whatever limit it is asked under.
func raw(name string, events, burst int64, period time.Duration) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{Name: name, Algorithm: tidegate.TokenBucket, RawTime: true, Events: events, Burst: burst, Period: period})
}

// testRawIdentity: of raw time a key has one counter, whatever the period, and it is not
// the one of a bucket that counts events.
func testRawIdentity(s *subject) {
	const h = time.Hour
	s.admit(check(raw("raw", 1, 10, h), "ann", 5)) // five hours
	s.wantLeft(10, check(raw("raw", 2, 20, h), "ann", 1))
	s.wantLeft(5, check(raw("raw", 10, 10, 10*h), "ann", 1))
	s.wantLeft(0, check(raw("raw", 60, 60, h), "ann", 1))
	s.refuse(check(raw("raw", 60, 60, h), "ann", 1))
	s.wantLeft(10, check(raw("raw", 1, 10, h), "bob", 1))
	s.wantLeft(10, check(raw("raw again", 1, 10, h), "ann", 1))
	for _, period := range []time.Duration{time.Millisecond, h, 10 * h} {
		l := tidegate.MustLimit(tidegate.Spec{Name: "raw", Algorithm: tidegate.TokenBucket, Events: 10, Period: period})
		s.wantLeft(10, check(l, "ann", 1))
	}
	s.admit(check(raw("raw", 1, 10, h), "ann", 5))
	s.refuse(check(raw("raw", 1, 10, h), "ann", 1))
}

// testRawChange: what is owed stays the same time under every limit, as long as anybody
// asks: no ask under another one cuts it, converts it or makes it drain at another pace.
func testRawChange(s *subject) {
	sec := time.Second
	wide, slow, fast, tight := raw("raw", 10, 10, sec), raw("raw", 10, 10, minute), raw("raw", 1000, 500, sec), raw("raw", 1, 1, sec)
	f := func(l *tidegate.Limit, cost int64, ok bool, left int64, retry, reset time.Duration) {
		s.Helper()
		d := s.takeN(1, check(l, "ann", cost))
		if d.OK != ok || d.Limit != l || d.Remaining != left || d.RetryAfter != retry || d.ResetAfter != reset {
			s.Errorf("Take(%s, %d) = %s, want %t, remaining %d, retry %s, reset %s", l, cost, show(d), ok, left, retry, reset)
		}
	}
	f(wide, 10, true, 0, 0, sec) // used up, and nine more under a slower one
	f(slow, 1, true, 8, 0, 7*sec)
	f(slow, 8, true, 0, 0, 55*sec)
	f(slow, 1, false, 0, sec, 55*sec)
	f(wide, 1, false, 0, 54*sec+100*time.Millisecond, 55*sec)
	f(fast, 1, false, 0, 54*sec+501*time.Millisecond, 55*sec)
	f(tight, 1, false, 0, 55*sec, 55*sec)
	f(slow, 0, false, 0, sec, 55*sec)
	s.clock.add(54 * sec)
	f(fast, 500, false, 0, sec, sec)
	f(tight, 1, false, 0, sec, sec)
	f(slow, 1, true, 8, 0, 7*sec)
	s.clock.add(6*sec + 500*time.Millisecond)
	f(fast, 1, false, 0, time.Millisecond, 500*time.Millisecond)
	f(tight, 0, false, 0, 500*time.Millisecond, 500*time.Millisecond)
	s.clock.add(time.Millisecond)
	f(fast, 1, true, 0, 0, 500*time.Millisecond)
	f(fast, 501, false, 0, 0, 500*time.Millisecond)
	s.clock.add(sec)
	f(fast, 0, true, 500, 0, 0)
	f(tight, 1, true, 0, 0, sec)
}

// testRawReturn: what is given back, or charged unasked, is events of the limit that it is
// asked under.
func testRawReturn(s *subject) {
	sec := time.Second
	perSecond, perMinute := raw("raw", 1, 60, sec), raw("raw", 1, 10, minute)
	d := s.admit(check(perMinute, "ann", 3)) // three minutes
	s.adjust(d.Receipt, check(perSecond, "ann", -30))
	if got := s.takeN(1, check(perMinute, "ann", 0)); got.ResetAfter != 150*sec || got.Remaining != 7 {
		s.Errorf("30 s of 3 min given back: %s, want a reset after 2m30s, and 7 left", show(got))
	}
	s.adjust(d.Receipt, check(perMinute, "ann", 2))
	if got := s.takeN(1, check(perSecond, "ann", 0)); got.ResetAfter != 270*sec || got.OK {
		s.Errorf("2 min charged on top: %s, want a reset after 4m30s", show(got))
	}
	s.adjust(d.Receipt, check(perSecond, "ann", 10)) // more than it holds is owed as it is
	s.adjust(d.Receipt, check(perMinute, "ann", -100))
	if got := s.takeN(1, check(perMinute, "ann", 0)); got.ResetAfter != 0 || got.Remaining != 10 {
		s.Errorf("all given back: %s", show(got))
	}
}
