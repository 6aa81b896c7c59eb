package storetest

import (
	"fmt"
	"time"

	"tidegate.dev/tidegate"
)

// testStepBack: when the clock is set back nothing is refilled, and nobody is
// held back for more than a period longer than before.
func testStepBack(s *subject) {
	s.each(func(s *subject, k kind) {
		p := k.period()
		for _, back := range []time.Duration{step, p / 2, p - step, p, p + step, 3*p + p/3, 100 * p} {
			s.clock.set(newClock().t.Add(200*p + p/3))
			l := k.brisk(fmt.Sprint("back ", back), 5)
			full, half := check(l, "full", 1), check(l, "half", 1)
			s.admitTimes(5, full)
			s.admitTimes(2, half)

			s.clock.add(-back)
			s.refuse(full)
			if d := s.takeN(1, check(l, "half", 0)); d.Remaining > 3 {
				s.Errorf("back by %s with 2 of 5 used: a peek = %s, want at most 3 left", back, show(d))
			}
			// The oldest part of sub-windows may still be leaving after two.
			atMost := 2*p + k.part() + step
			waited := time.Duration(0)
			for ; !s.takeN(1, full).OK; waited += p / 24 {
				if waited > atMost {
					s.Errorf("back by %s: still refused %s later, want at most %s", back, waited, atMost)
					break
				}
				s.clock.add(p / 24)
			}
		}
	})
}

// testStale: a clock that is late by a moment around the start of a window must
// not wipe what the new window has counted.
func testStale(s *subject) {
	s.each(func(s *subject, k kind) {
		p := k.period()
		start := newClock().t.Truncate(p).Add(10 * p)
		l := k.brisk("stale", 5)
		c := check(l, "ann", 1)
		s.clock.set(start)
		s.admitTimes(5, c)
		for range 10 {
			s.at(start, -step)
			s.refuse(c)
			s.at(start, step)
			s.refuse(c)
		}
	})
}

// testStepBackOld: what was used some time ago is not forgotten, nor does it weigh
// less, when the clock is set back by whatever.
func testStepBackOld(s *subject) {
	s.each(func(s *subject, k kind) {
		p := k.period()
		for _, apart := range []time.Duration{step, p / 6, p / 2, p - step, p} {
			for _, back := range []time.Duration{p, 3 * p, 3*p + p/3, 10*p - p*9/60, 10*p - step} {
				start := newClock().t.Truncate(p).Add(50 * p)
				c := check(k.brisk(fmt.Sprint("old ", apart, back), 5), "ann", 1)
				s.clock.set(start)
				s.admitTimes(3, c)
				s.clock.add(apart)
				s.admitTimes(2, c)
				peek := c
				peek.Cost = 0
				before := s.takeN(1, peek).Remaining
				s.clock.add(-back)
				if d := s.takeN(1, peek); d.Remaining > before {
					s.Errorf("three and, %s later, two of five used, the clock is set back by %s: %d were left and now a peek = %s", apart, back, before, show(d))
				}
			}
		}
	})
}

// testBehind: a clock that is behind by less than a period sees the key as it was at
// its latest: what is left is not more, and what is charged then is held as long.
func testBehind(s *subject) {
	s.each(func(s *subject, k kind) {
		p := k.period()
		for _, behind := range []time.Duration{step, p / 60, p / 10, p / 2, p - step} {
			start := newClock().t.Truncate(p).Add(50 * p)
			c := check(k.brisk(fmt.Sprint("behind ", behind), 5), "ann", 1)
			peek := c
			peek.Cost = 0
			s.at(start, -p/12)
			s.admitTimes(3, c)
			s.clock.set(start)
			latest := s.admit(c)
			until := start.Add(latest.ResetAfter)
			s.at(start, -behind)
			if d := s.takeN(1, peek); d.Remaining > latest.Remaining {
				s.Errorf("behind by %s: a peek = %s, want no more than the %d that were left", behind, show(d), latest.Remaining)
			}
			d := s.takeN(1, c)
			if held := s.clock.now().Add(d.ResetAfter); d.OK && k.spec.Algorithm != tidegate.Concurrency && held.Before(until) {
				s.Errorf("behind by %s: Take = %s, which is %s before what was used already is gone", behind, show(d), until.Sub(held))
			}
			if d.OK && d.Remaining >= latest.Remaining && latest.Remaining > 0 {
				s.Errorf("behind by %s: Take = %s, want less than the %d that were left", behind, show(d), latest.Remaining)
			}
		}
	})
}

// testStepForward: after any time a key is as good as new and no better: its
// capacity passes at once, not twice that.
func testStepForward(s *subject) {
	s.each(func(s *subject, k kind) {
		s.clock.set(newClock().t)
		l := k.brisk("forward", 5)
		c := check(l, "ann", 1)
		s.admitTimes(5, c)
		for _, d := range []time.Duration{3 * k.period(), 1000 * k.period(), 10 * 365 * 24 * time.Hour} {
			s.clock.add(d)
			s.wantLeft(5, c)
			s.admitTimes(5, c)
			s.refuse(c)
		}
	})
}
