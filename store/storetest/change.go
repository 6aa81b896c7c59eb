package storetest

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// testChangeKeepsUsed: when a limit changes, what was used stays used: no
// refill on the way up or down, and what remains is never negative.
func testChangeKeepsUsed(s *subject) {
	s.each(func(s *subject, k kind) {
		f := func(key string, events, left int64) {
			s.Helper()
			s.admit(check(k.slow("plan", 10), key, 5))
			l := k.slow("plan", events)
			s.wantLeft(left, check(l, key, 1))
			for range left {
				s.admit(check(l, key, 1))
			}
			if d := s.refuse(check(l, key, 1)); d.Limit != l || d.Remaining != 0 {
				s.Errorf("five of ten used, now %d: Take = %s, want remaining 0", events, show(d))
			}
		}
		f("raised", 20, 15)
		f("same", 10, 5)
		f("lowered", 6, 1)
		f("lowered to what is used", 5, 0)
		f("lowered below what is used", 3, 0)
	})
}

// testChangeNarrower: asking under a narrower tier does not forget what was
// used under the wider one.
func testChangeNarrower(s *subject) {
	s.each(func(s *subject, k kind) {
		wide, narrow := k.slow("plan", 10), k.slow("plan", 4)
		s.admit(check(wide, "ann", 8))
		for range 3 {
			s.refuse(check(narrow, "ann", 1))
			s.wantLeft(0, check(narrow, "ann", 1))
			s.wantLeft(2, check(wide, "ann", 1))
		}
	})
}

// testChangeRaised: a raised limit admits at once what it newly allows, though
// the old one was used up.
func testChangeRaised(s *subject) {
	s.each(func(s *subject, k kind) {
		before, after := k.slow("plan", 2), k.slow("plan", 5)
		s.admitTimes(2, check(before, "ann", 1))
		s.refuse(check(before, "ann", 1))
		s.admitTimes(3, check(after, "ann", 1))
		s.refuse(check(after, "ann", 1))
		s.refuse(check(before, "ann", 1))
	})
}

// testChangeResolution: a log and sub-windows of any number are one counter. No change
// from one to another refills anybody, or makes anybody wait longer than a period and one
// part of each.
func testChangeResolution(s *subject) {
	limit := func(name string, events int64, parts int, ceiling bool) *tidegate.Limit {
		spec := tidegate.Spec{Name: name, Events: events, Period: minute, Algorithm: tidegate.SlidingLog}
		if parts > 0 {
			spec.Algorithm, spec.Parts, spec.Ceiling = tidegate.SubWindows, parts, ceiling
		}
		return tidegate.MustLimit(spec)
	}
	resolutions := []int{0, 6, 7, 60}
	for _, before := range resolutions {
		for _, after := range resolutions {
			for _, ceiling := range []bool{false, true} {
				name := fmt.Sprint("resolution ", before, after, ceiling)
				was, raised, lowered := limit(name, 60, before, false), limit(name, 100, after, ceiling), limit(name, 50, after, ceiling)
				s.admit(check(was, "ann", 60))
				s.refuse(check(lowered, "ann", 1))
				s.admit(check(raised, "ann", 40))
				s.refuse(check(raised, "ann", 1))
				s.refuse(check(was, "ann", 1))
				d := s.refuse(check(lowered, "ann", 1))
				if longest := minute + 2*minute/6; d.RetryAfter <= 0 || d.RetryAfter > longest {
					s.Errorf("%s: Take = %s, want a retry after at most %s", name, show(d), longest)
				}
				s.wantRetry(d.RetryAfter, check(lowered, "ann", 1))
				s.clock.add(3 * minute)
				s.admit(check(lowered, "ann", 50))
				s.refuse(check(lowered, "ann", 1))
			}
		}
	}
}

// testChangeRetry: the RetryAfter under a changed limit is as exact as any.
func testChangeRetry(s *subject) {
	bucket := func(events int64) tidegate.Check {
		l := tidegate.MustLimit(tidegate.Spec{Name: "plan", Events: events, Burst: 10, Period: minute, Algorithm: tidegate.TokenBucket})
		return check(l, "ann", 1)
	}
	perSecond, perMinute := bucket(600), bucket(10)
	f := func(key string, before, after tidegate.Check, want time.Duration) {
		s.Helper()
		before.Key, after.Key = key, key
		s.admitTimes(10, before)
		if d := s.refuse(after); d.RetryAfter != want {
			s.Errorf("%s: Take = %s, want retry %s", key, show(d), want)
		}
		s.wantRetry(want, after)
	}
	// A bare timestamp, lowered from 10/s to 10/min, would admit nine more;
	// raised, it would hold back for 59 s.
	f("lowered", perSecond, perMinute, 6*time.Second)
	f("raised", perMinute, perSecond, 100*time.Millisecond)
	// Two keys of one history: where a refusal makes the new pace count, asking
	// early would itself put off the turn.
	s.each(func(s *subject, k kind) {
		for _, key := range []string{"early", "in time"} {
			s.admit(check(k.brisk("plan", 9), key, 9))
		}
		s.clock.add(k.period() / 10)
		c := tidegate.Check{Limit: k.brisk("plan", 4), Key: "early", Cost: 1}
		retry := s.refuse(c).RetryAfter
		start := s.clock.now()
		s.at(start, retry-step)
		s.refuse(c)
		c.Key = "in time"
		s.at(start, 0)
		s.refuse(c)
		s.at(start, retry)
		s.admit(c)
	})
}

// testChangeReset: when a peek under a changed limit says that the key is as good as
// new, it is, and a step before it is not; also where more was used than the
// narrower limit can hold, by somebody who would wait, and beside another limit.
func testChangeReset(s *subject) {
	s.each(func(s *subject, k kind) {
		f := func(name string, before, used, after int64, wait time.Duration, beside bool) {
			s.Helper()
			peek := func(key string) []tidegate.Check {
				c := check(k.brisk("plan", after), key, 0)
				c.MaxWait = max(c.MaxWait, wait)
				if beside {
					return []tidegate.Check{c, check(k.brisk("beside", 1000), key, 0)}
				}
				return []tidegate.Check{c}
			}
			// Two keys of one history: asking early may make the new pace count.
			early, late := peek(name+" early"), peek(name+" late")
			for _, p := range [][]tidegate.Check{early, late} {
				s.admit(check(k.brisk("plan", before), p[0].Key, used))
			}
			s.clock.add(k.period() / 20)
			reset := s.takeN(1, early...).ResetAfter
			s.takeN(1, late...)
			start := s.clock.now()
			s.at(start, reset-step)
			if d := s.takeN(1, early...); d.ResetAfter == 0 {
				s.Errorf("%s: %d of %d used, a peek under %d said reset %s, and a step before that one says %s", name, used, before, after, reset, show(d))
			}
			s.at(start, reset)
			if d := s.admit(late...); d.ResetAfter != 0 || d.Remaining != after && !beside {
				s.Errorf("%s: %d of %d used, a peek under %d said reset %s, and then one says %s", name, used, before, after, reset, show(d))
			}
		}
		for _, wait := range []time.Duration{0, time.Hour} {
			for _, beside := range []bool{false, true} {
				name := fmt.Sprint(wait, beside)
				f(name+" lowered", 10, 3, 5, wait, beside)
				f(name+" lowered below what is used", 10, 8, 5, wait, beside)
				f(name+" raised", 5, 4, 10, wait, beside)
			}
		}
	})
}
