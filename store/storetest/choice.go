package storetest

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// testChoiceOfRefusal: of the limits that refuse, the Decision is about the one
// with the longest RetryAfter, and one that can never admit goes before all.
func testChoiceOfRefusal(s *subject) {
	log := func(events int64, period time.Duration) tidegate.Check {
		l := tidegate.MustLimit(tidegate.Spec{Events: events, Period: period, Algorithm: tidegate.SlidingLog})
		return check(l, "ann", 1)
	}
	hour, day, week := log(1, time.Hour), log(1, 24*time.Hour), log(9, 7*24*time.Hour)
	s.admit(hour, day, week)
	checks := []tidegate.Check{hour, day, week}
	for range 2 {
		if d := s.refuse(checks...); d.Limit != day.Limit || d.RetryAfter <= 23*time.Hour {
			s.Errorf("Take(%s) = %s, want it refused by the day", describe(checks), show(d))
		}
		slices.Reverse(checks)
	}
	hour.Cost = 2
	for _, checks := range [][]tidegate.Check{{hour, day, week}, {week, day, hour}} {
		if d := s.refuseForGood(checks...); d.Limit != hour.Limit {
			s.Errorf("Take(%s) = %s, want it refused by the hour", describe(checks), show(d))
		}
	}
}

// testChoiceOfAdmission: of the limits that admit, it is about the one with the
// least left in proportion to its capacity.
func testChoiceOfAdmission(s *subject) {
	for _, k := range s.asked.kinds() {
		few, many := k.slow("few", 4), k.slow("many", 10)
		checks := []tidegate.Check{check(many, "ann", 1), check(few, "ann", 1)}
		for range 2 { // 9/10 and 3/4, then 8/10 and 2/4
			if d := s.admit(checks...); d.Limit != few {
				s.Errorf("Take(%s) = %s, want it to be about %s", describe(checks), show(d), few)
			}
			slices.Reverse(checks)
		}
		s.admit(check(many, "ann", 6))
		if d := s.admit(checks...); d.Limit != many || d.Remaining != 1 { // 1/10 and 1/4
			s.Errorf("Take(%s) = %s, want it to be about %s", describe(checks), show(d), many)
		}
	}
}

// testReceipt: At is the time of the charge by the store's clock, in ticks of
// 1/1024 µs.
func testReceipt(s *subject) {
	now := time.Now
	if s.clock != nil {
		now = s.clock.now
	}
	for _, k := range s.asked.kinds() {
		before := now()
		d := s.admit(check(k.slow("receipt", 5), "ann", 1))
		at := time.UnixMicro(d.Receipt.At / 1024)
		// A store on another machine has a clock of its own.
		if at.Before(before.Add(-time.Hour)) || at.After(now().Add(time.Hour)) {
			s.Errorf("%s: At %d is %s, want the time in ticks of 1/1024 µs, about %s", k.name, d.Receipt.At, at, before)
		}
		if s.clock != nil && at.Sub(before).Abs() > time.Millisecond {
			s.Errorf("%s: At %d is %s, want %s", k.name, d.Receipt.At, at, before)
		}
	}
}
