package cluster

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
	*Store
	inner *slow
}

func deny(t *testing.T, f func(s *denying)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inner := newSlow()
		s := New(inner, Options{})
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
				// decided; who is sent on its way now is there when there is room.
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

// What it is not said of: every time, the inner store is asked.
func TestNeverRemembered(t *testing.T) {
	one := tidegate.Spec{Name: "one", Events: 1, Period: time.Hour, Algorithm: tidegate.TokenBucket}
	f := func(name string, change func(*tidegate.Spec, *tidegate.Check)) {
		t.Run(name, func(t *testing.T) {
			deny(t, func(s *denying) {
				spec, c := one, tidegate.Check{Key: "ann", Cost: 1}
				change(&spec, &c)
				c.Limit = tidegate.MustLimit(spec)
				first := c
				first.Cost, first.MaxWait = 1, 0
				s.take(first)
				s.asked(true)
				s.refused(true, c)
				s.refused(true, c)
			})
		})
	}
	f("peek", func(_ *tidegate.Spec, c *tidegate.Check) { c.Cost = 0 })
	f("never fits", func(_ *tidegate.Spec, c *tidegate.Check) { c.Cost = 2 })
	f("concurrency", func(l *tidegate.Spec, _ *tidegate.Check) { l.Algorithm = tidegate.Concurrency })
	f("count_rejected", func(l *tidegate.Spec, _ *tidegate.Check) { l.Algorithm, l.CountRejected = tidegate.SlidingLog, true })
	f("estimate", func(_ *tidegate.Spec, c *tidegate.Check) { c.Estimate = true })
	f("booked ahead", func(_ *tidegate.Spec, c *tidegate.Check) { c.MaxWait = time.Second })
	f("queued", func(l *tidegate.Spec, _ *tidegate.Check) {
		l.Terms = &tidegate.Terms{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Second}}
	})
	f("switched off", func(l *tidegate.Spec, _ *tidegate.Check) { l.Terms = &tidegate.Terms{NoDenyCache: true} })
}

// What was refused before does not answer where somebody else has to be asked or told.
func TestRefusalBesideOthers(t *testing.T) {
	used := checkOf(1, time.Hour, tidegate.TokenBucket)
	beside := func(name string, other tidegate.Check, asked bool) {
		t.Run(name, func(t *testing.T) {
			deny(t, func(s *denying) {
				s.use(used)
				d := s.refused(asked, used, other)
				if name == "never fits" && !d.Never {
					s.Errorf("%+v, want to be told that it never fits", d)
				}
				s.refused(asked, other, used)
			})
		})
	}
	limit := func(a tidegate.Algorithm) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: "beside", Events: 9, Period: time.Hour, Algorithm: a})
	}
	rejects := tidegate.MustLimit(tidegate.Spec{Name: "beside", Events: 9, Period: time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
	queue := tidegate.MustLimit(tidegate.Spec{
		Name: "beside", Events: 9, Period: time.Hour, Algorithm: tidegate.TokenBucket,
		Terms: &tidegate.Terms{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Second}},
	})
	beside("another limit", tidegate.Check{Key: "ann", Limit: limit(tidegate.TokenBucket), Cost: 1}, false)
	beside("a peek", tidegate.Check{Key: "ann", Limit: limit(tidegate.TokenBucket)}, false)
	beside("advice", tidegate.Check{Key: "ann", Limit: limit(tidegate.TokenBucket), Cost: 1, Advisory: true}, false)
	beside("a slot", tidegate.Check{Key: "ann", Limit: limit(tidegate.Concurrency), Cost: 1}, false)
	beside("never fits", tidegate.Check{Key: "ann", Limit: limit(tidegate.TokenBucket), Cost: 10}, true)
	beside("count_rejected", tidegate.Check{Key: "ann", Limit: rejects, Cost: 1}, true)
	beside("queued", tidegate.Check{Key: "ann", Limit: queue, Cost: 1}, true)
	beside("the same counter", used, true)
}

// Advice about a limit that is used up is not a refusal.
func TestAdviceIsNotRefused(t *testing.T) {
	deny(t, func(s *denying) {
		c := checkOf(1, time.Hour, tidegate.TokenBucket)
		s.use(c)
		c.Advisory = true
		if d := s.take(c, checkOf(9, time.Minute, tidegate.FixedWindow)); !d.OK {
			s.Errorf("%+v", d)
		}
		s.asked(true)
	})
}

// Two checks of one counter ask for the sum, and what that is refused with says nothing
// of one of them.
func TestRefusalOfASum(t *testing.T) {
	deny(t, func(s *denying) {
		c := checkOf(10, time.Hour, tidegate.TokenBucket)
		c.Cost = 7
		s.take(c)
		s.asked(true)
		c.Cost = 2
		s.refused(true, c, c)
		if d := s.take(c); !d.OK {
			s.Errorf("what fits is refused: %+v", d)
		}
	})
}

// After a reset, or when all is to be forgotten, the inner store is asked; what was on its
// way then is not remembered.
func TestForget(t *testing.T) {
	reset := func(s *denying, c tidegate.Check) {
		if err := s.Reset(context.Background(), []tidegate.Check{c}); err != nil {
			s.Fatal(err)
		}
	}
	deny(t, func(s *denying) {
		c := checkOf(1, time.Hour, tidegate.TokenBucket)
		s.use(c)
		s.Forget()
		s.refused(true, c)
		s.refused(false, c)
		reset(s, c)
		if d := s.take(c); !d.OK {
			s.Errorf("after a reset: %+v", d)
		}
		s.asked(true)

		go func() { _, _ = s.Take(context.Background(), []tidegate.Check{c}, 1) }()
		synctest.Wait() // it has been sent
		s.Forget()
		time.Sleep(trip)
		s.asked(true)
		s.refused(true, c)
	})
	// A refusal that was decided before the reset, and heard of while it was under way.
	deny(t, func(s *denying) {
		c := checkOf(1, time.Hour, tidegate.TokenBucket)
		s.take(c)
		go func() { _, _ = s.Take(context.Background(), []tidegate.Check{c}, 1) }()
		time.Sleep(trip / 4)
		reset(s, c)
		s.inner.wantCalls(s.T, 1, 1)
		if d := s.take(c); !d.OK {
			s.Errorf("after a reset: %+v", d)
		}
	})
}

// What is given back here is seen here at once, under whatever limit.
func TestReturnIsSeen(t *testing.T) {
	deny(t, func(s *denying) {
		low, high := checkOf(5, time.Hour, tidegate.FixedWindow), checkOf(8, time.Hour, tidegate.FixedWindow)
		d := s.use(high)
		s.refused(true, low)
		s.refused(false, low)
		back := func(n int64) {
			c := high
			c.Cost = -n
			if err := s.Adjust(context.Background(), d.At, []tidegate.Check{c}); err != nil {
				s.Fatal(err)
			}
		}
		back(4)
		for _, c := range []tidegate.Check{low, high} {
			if d := s.take(c); !d.OK {
				s.Errorf("after a return: %+v", d)
			}
			s.asked(true)
		}
		s.refused(true, low)

		more := high
		more.Cost = 2 // charged unasked: there is no room all the more
		if err := s.Adjust(context.Background(), d.At, []tidegate.Check{more}); err != nil {
			s.Fatal(err)
		}
		s.refused(false, low)

		// One that was refused before the return, and hears of it after.
		go func() { _, _ = s.Take(context.Background(), []tidegate.Check{high}, 1) }()
		time.Sleep(trip / 4)
		back(6)
		s.asked(true)
		if d := s.take(high); !d.OK {
			s.Errorf("after a return: %+v", d)
		}
	})
}

// Those who came while a refusal was on its way are told by it, without another call.
func TestRefusalAnswersWhoCameMeanwhile(t *testing.T) {
	c1 := checkOf(1, time.Hour, tidegate.TokenBucket)
	with(t, plain, Options{}, func(t *testing.T, c *crowd, inner *slow) {
		c.come(1, c1)
		c.Wait()
		for range 5 {
			c.come(1, c1)
		}
		c.Wait()
		inner.wantCalls(t, 1, 1)
		for i, who := range c.told[1:] {
			if who.d.OK || who.d.RetryAfter <= 0 || who.err != nil {
				t.Errorf("%d: %+v, %v", i, who.d, who.err)
			}
		}
	})
}
