package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// denying is a Store around a slow one in a bubble, asked by one at a time.
type denying struct {
	*testing.T
	*Node
	inner *slow
}

func deny(t *testing.T, f func(s *denying)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := newSlow()
		s := newNode(inner, forFew(Options{}))
		defer s.Close()
		f(&denying{t, s, inner})
	})
}

func (s *denying) take(checks ...tidegate.Check) tidegate.Decision {
	s.Helper()
	d, err := s.Take(context.Background(), checks, 1)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// refused wants checks to be refused, by the inner store if asked says so.
func (s *denying) refused(asked bool, checks ...tidegate.Check) tidegate.Decision {
	s.Helper()
	d := s.take(checks...)
	if d.OK {
		s.Errorf("%v: %+v, want it refused", checks, d)
	}
	s.asked(asked)
	return d
}

// asked wants the inner store to have been asked once, or not at all.
func (s *denying) asked(want bool) {
	s.Helper()
	if want {
		s.inner.wantCalls(s.T, 1)
	} else {
		s.inner.wantCalls(s.T)
	}
}

// use takes all of c that there is, and has it refused once.
func (s *denying) use(c tidegate.Check) tidegate.Decision {
	s.Helper()
	all := c
	all.Cost = c.Limit.Capacity()
	d := s.take(all)
	if !d.OK {
		s.Fatalf("%v: %+v", all, d)
	}
	s.take(c)
	s.inner.wantCalls(s.T, 1, 1)
	return d
}

func checkOf(events int64, period time.Duration, a tidegate.Algorithm) tidegate.Check {
	return tidegate.Check{Key: "ann", Limit: per(events, period, a), Cost: 1}
}

// What was refused is refused without asking, with times that go by, until there is room:
// the inner store is asked then, and not before.
func TestRefusalIsRemembered(t *testing.T) {
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		t.Run(a.String(), func(t *testing.T) {
			deny(t, func(s *denying) {
				c := checkOf(10, 800*time.Millisecond, a)
				s.use(c)
				d := s.refused(false, c)
				start := time.Now()
				for d.RetryAfter > time.Millisecond {
					time.Sleep(time.Millisecond)
					next := s.refused(false, c)
					if next.RetryAfter != d.RetryAfter-time.Millisecond || next.ResetAfter != d.ResetAfter-time.Millisecond ||
						next.Remaining != 0 || next.Limit != c.Limit || next.Never {
						s.Fatalf("after %s: %+v, a millisecond before %+v", time.Since(start), next, d)
					}
					d = next
				}
				// It counts from when the question was sent, half a trip before it was
				// decided; a request that is sent now arrives when there is room.
				time.Sleep(d.RetryAfter - time.Microsecond)
				s.refused(false, c)
				time.Sleep(time.Microsecond)
				if d := s.take(c); !d.OK {
					s.Errorf("when there is room: %+v", d)
				}
				s.asked(true)
			})
		})
	}
}

// A refusal is remembered for a second at most, and tells the whole wait all the same.
func TestRefusalIsRememberedForASecond(t *testing.T) {
	deny(t, func(s *denying) {
		c := checkOf(1, time.Hour, tidegate.TokenBucket)
		s.use(c)
		time.Sleep(maxDenial - trip - time.Millisecond)
		if d := s.refused(false, c); d.RetryAfter < 59*time.Minute || d.ResetAfter < 59*time.Minute {
			s.Errorf("%+v, want most of an hour", d)
		}
		time.Sleep(time.Millisecond)
		s.refused(true, c)
	})
}

// A refusal says nothing of a smaller cost.
func TestRefusalOfACost(t *testing.T) {
	deny(t, func(s *denying) {
		c := checkOf(10, time.Hour, tidegate.TokenBucket)
		c.Cost = 7
		s.take(c)
		s.asked(true)
		c.Cost = 5
		s.refused(true, c)
		c.Cost = 6
		if d := s.refused(false, c); d.Remaining != 3 {
			s.Errorf("%+v, want 3 remaining", d)
		}
		c.Cost = 4
		s.refused(true, c)
		c.Cost = 3
		if d := s.take(c); !d.OK {
			s.Errorf("what fits is refused: %+v", d)
		}
	})
}

// Trap 10: the refusal of a sliding window ends when the estimate frees a place, which is
// before the window does.
func TestTrap10SlidingEstimateFreesEarlier(t *testing.T) {
	deny(t, func(s *denying) {
		c := checkOf(10, time.Second, tidegate.SlidingWindow)
		s.use(c)
		time.Sleep(time.Second) // into the next window, where the ten weigh less and less
		c.Cost = 2
		d := s.refused(true, c)
		if d.RetryAfter > 250*time.Millisecond {
			s.Fatalf("%+v, want a fifth of the window", d)
		}
		s.refused(false, c)
		time.Sleep(d.RetryAfter)
		if d := s.take(c); !d.OK {
			s.Errorf("when the estimate frees two places: %+v", d)
		}
	})
}

// Trap 10: what was refused under a low override is not refused under a higher one, nor
// the other way round; counters of other keys and names are others.
func TestTrap10OverrideHasItsOwnRefusals(t *testing.T) {
	deny(t, func(s *denying) {
		low, high := checkOf(5, time.Hour, tidegate.FixedWindow), checkOf(8, time.Hour, tidegate.FixedWindow)
		s.use(low)
		s.refused(false, low)
		for range 3 {
			if d := s.take(high); !d.OK {
				s.Fatalf("under the higher limit: %+v", d)
			}
		}
		s.inner.wantCalls(s.T, 1, 1, 1)
		s.refused(true, high)
		s.refused(false, high)
		s.refused(false, low)
		other := low
		other.Key = "bob"
		s.take(other)
		s.asked(true)
		other = low
		other.Limit = tidegate.MustLimit(tidegate.Spec{Name: "other", Events: 5, Period: time.Hour, Algorithm: tidegate.FixedWindow})
		s.take(other)
		s.asked(true)
		same := checkOf(5, time.Hour, tidegate.FixedWindow) // as a rule file gives when it is read again
		s.refused(false, same)
	})
}

// Where a key keeps raw time, limits of one counter may differ in their periods: a refusal
// under one of them says nothing of another.
func TestRawTimeHasItsOwnRefusals(t *testing.T) {
	deny(t, func(s *denying) {
		raw := func(period time.Duration) tidegate.Check {
			l := tidegate.MustLimit(tidegate.Spec{Name: "raw", Events: 5, Period: period, Algorithm: tidegate.TokenBucket, RawTime: true})
			return tidegate.Check{Key: "ann", Limit: l, Cost: 1}
		}
		fast, slow := raw(time.Minute), raw(time.Hour)
		s.use(fast)
		s.refused(false, fast)
		for range 4 { // the minute that is owed is less than one of its events
			if d := s.take(slow); !d.OK {
				s.Fatalf("under the slower limit: %+v", d)
			}
		}
		s.inner.wantCalls(s.T, 1, 1, 1, 1)
		s.refused(true, slow)
		s.refused(false, slow)
		s.refused(false, raw(time.Hour))
	})
}
