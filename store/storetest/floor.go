package storetest

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"tidegate.dev/tidegate"
)

// above returns a check that leaves floor events.
func above(c tidegate.Check, floor int64) tidegate.Check {
	c.Floor = floor
	return c
}

// testFloor: a check with a floor passes only while that many events remain afterwards;
// others may use them. Remaining is what is above the floor.
func testFloor(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("floor", 10)
		c := check(l, "ann", 1)
		for i := range int64(6) {
			if d := s.admit(above(c, 4)); d.Remaining != 5-i || d.Limit != l {
				s.Errorf("request %d above 4 of 10 = %s, want remaining %d", i+1, show(d), 5-i)
			}
		}
		if d := s.refuse(above(c, 4)); d.Limit != l || d.Remaining != 0 {
			s.Errorf("with 4 left, above 4 = %s, want it refused with remaining 0", show(d))
		}
		s.wantLeft(0, above(c, 4))
		s.wantLeft(0, above(c, 7))
		s.wantLeft(1, above(c, 3))
		s.wantLeft(4, c)
		c.Cost = 2
		s.refuse(above(c, 3))
		s.admit(above(c, 2))
		s.admit(c)
		s.refuse(c)
		s.refuse(above(check(l, "ann", 1), 1))
		s.wantLeft(10, check(l, "bob", 1))
	})
}

// testFloorVector: each check has its own floor, whatever the order; of several on one
// counter the costs add up, and all floors hold.
func testFloorVector(s *subject) {
	s.each(func(s *subject, k kind) {
		a, b := k.slow("floor a", 10), k.slow("floor b", 10)
		one := func(floorA, floorB int64) []tidegate.Check {
			return []tidegate.Check{above(check(a, "ann", 1), floorA), above(check(b, "ann", 1), floorB)}
		}
		s.admit(one(9, 0)...)
		if d := s.refuse(one(9, 0)...); d.Limit != a {
			s.Errorf("above 9 of 9 left = %s, want it refused by %s", show(d), a)
		}
		if d := s.refuse(one(0, 9)...); d.Limit != b {
			s.Errorf("above 9 of 9 left = %s, want it refused by %s", show(d), b)
		}
		s.wantLeft(9, check(b, "ann", 1))
		twice := k.slow("floor twice", 10)
		for _, floors := range [][2]int64{{7, 0}, {0, 7}, {7, 7}, {3, 7}} {
			key := string(rune('a' + floors[0]*10 + floors[1]))
			pair := []tidegate.Check{above(check(twice, key, 1), floors[0]), above(check(twice, key, 1), floors[1])}
			s.admit(pair...)
			if d := s.refuse(pair...); d.Remaining != 1 {
				s.Errorf("two with 8 left, above %d = %s, want remaining 1", floors, show(d))
			}
			s.wantLeft(8, check(twice, key, 1))
		}
	})
}

// testFloorCopies: as many copies as leave so much. Advice has its own floor.
func testFloorCopies(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("floor copies", 20)
		f := func(n int, cost, floor, granted, left int64) {
			s.Helper()
			if d := s.takeN(n, above(check(l, "ann", cost), floor)); d.Granted != granted || d.Remaining != left {
				s.Errorf("%d copies of cost %d above %d = %s, want granted %d remaining %d", n, cost, floor, show(d), granted, left)
			}
		}
		f(5, 3, 10, 3, 1)
		f(math.MaxInt, 1, 10, 1, 0)
		f(3, 1, 10, 0, 0)
		f(9, 2, 3, 3, 1)
		f(9, 1, 0, 4, 0)
		wide := k.slow("floor advised", 100)
		advised := k.slow("floor advice", 10)
		checks := []tidegate.Check{check(wide, "ann", 1), above(advisory(advised, "ann", 1), 7)}
		if d := s.takeN(5, checks...); d.Granted != 5 || d.Limit != wide || !checks[1].Over {
			s.Errorf("5 copies of %s = %s, want all granted and the advice over", describe(checks), show(d))
		}
		s.wantLeft(7, check(advised, "ann", 1))
	})
}

// testFloorNever: a cost and a floor that are more than the capacity never fit, and nothing
// comes of it. A floor below 0 is a mistake.
func testFloorNever(s *subject) {
	s.each(func(s *subject, k kind) {
		l := k.slow("floor never", 5)
		for _, c := range []tidegate.Check{
			above(check(l, "ann", 1), 5), above(check(l, "ann", 3), 3), above(check(l, "ann", 0), 5), above(check(l, "ann", 5), 1),
			above(check(l, "ann", 1), math.MaxInt64), above(check(l, "ann", math.MaxInt64), math.MaxInt64), above(check(l, "ann", 1), 6),
		} {
			if d := s.refuseForGood(c); d.Limit != l {
				s.Errorf("Take(%s) = %s, want it refused by %s", describe([]tidegate.Check{c}), show(d), l)
			}
		}
		s.wantLeft(5, check(l, "ann", 1))
		s.admit(above(check(l, "ann", 1), 4))
		s.wantLeft(4, check(l, "ann", 1))
		for _, n := range []int64{-1, math.MinInt64} {
			checks := []tidegate.Check{above(check(l, "ann", 1), n)}
			if d, err := s.store.Take(context.Background(), checks, 1); err == nil {
				s.Errorf("Take(%s) = %s, want an error", describe(checks), show(d))
			}
		}
		s.wantLeft(4, check(l, "ann", 1))
	})
}

// testFloorRejected: where refused requests count, those who leave some do not use it up by
// being refused, nor keep what others used from running out.
func testFloorRejected(s *subject) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "floor rejected", Events: 10, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
	c := check(l, "ann", 1)
	for i := range 30 {
		if d := s.takeN(1, above(c, 4)); d.OK != (i < 6) {
			s.Fatalf("request %d above 4 = %s", i+1, show(d))
		}
	}
	s.wantLeft(4, c)
	s.admitTimes(4, c)
	s.refuse(c)
	s.refuse(above(c, 4))
	s.wantLeft(0, c)
}

// testFloorRetry: RetryAfter above a floor is exact, after histories of all sorts.
func testFloorRetry(s *subject) {
	s.each(func(s *subject, k kind) {
		r := rand.New(rand.NewPCG(3, 4))
		l := k.brisk("exact floor", 12)
		refusals, times := 0, lessIf(s.brief, 400, 100)
		for range times {
			c := above(check(l, "ann", 1+r.Int64N(4)*r.Int64N(2)), r.Int64N(8))
			c.MaxWait = 0 // a leaky bucket with a line has its own test
			if d := s.takeN(1, c); !d.OK {
				refusals++
				s.wantRetry(d.RetryAfter, c)
			}
			s.clock.add(time.Duration(r.Int64N(int64(k.period()/6))) * time.Duration(r.IntN(2)) / step * step)
		}
		if refusals < times/8 {
			s.Errorf("only %d refusals were seen: the test has lost its point", refusals)
		}
	})
}

// testFloorWait: who waits for a turn above a floor waits for longer, and in line has fewer
// places.
func testFloorWait(s *subject) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "floor wait", Events: 1, Period: time.Second, Burst: 4, Algorithm: tidegate.TokenBucket})
	c := tidegate.Check{Key: "ann", Limit: l, Cost: 1, MaxWait: 3 * time.Second, Floor: 2}
	s.wantWaits(c, 0, 0, time.Second, 2*time.Second, 3*time.Second)
	if d := s.refuse(c); d.RetryAfter != time.Second {
		s.Errorf("beyond MaxWait = %s, want retry 1s", show(d))
	}
	c.Floor = 0
	s.wantWaits(c, 2*time.Second, 3*time.Second)
	leaky := tidegate.MustLimit(tidegate.Spec{Name: "floor line", Events: 1, Period: time.Second, Burst: 5, Algorithm: tidegate.LeakyBucket})
	c = tidegate.Check{Key: "ann", Limit: leaky, Cost: 1, MaxWait: time.Minute, Floor: 3}
	s.wantWaits(c, 0, time.Second, 2*time.Second)
	if d := s.refuse(c); d.RetryAfter != time.Second || d.Remaining != 0 {
		s.Errorf("when all places above 3 are taken = %s, want retry 1s", show(d))
	}
	c.Floor = 0
	s.wantWaits(c, 3*time.Second, 4*time.Second, 5*time.Second)
	s.wantRetry(s.refuse(c).RetryAfter, c)
}

// testFloorHammered: where refused requests count, a caller that is refused again and again
// because of its floor does not hold back callers without one.
func testFloorHammered(s *subject) {
	l := tidegate.MustLimit(tidegate.Spec{Name: "floor hammered", Events: 10, Period: minute, Algorithm: tidegate.SlidingLog, CountRejected: true})
	c := check(l, "ann", 1)
	s.admitTimes(10, c)
	for range 60 {
		s.clock.add(time.Second)
		s.takeN(1, above(c, 4))
	}
	for range 20 {
		s.takeN(1, above(c, 4))
	}
	s.wantLeft(4, c)
	s.admitTimes(4, c)
}
