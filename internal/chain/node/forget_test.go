package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

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
		l.Terms = &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Second}}}
	})
	f("switched off", func(l *tidegate.Spec, _ *tidegate.Check) {
		l.Terms = &tidegate.Terms{Handling: tidegate.Handling{NoDenyCache: true}}
	})
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
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Queue: &tidegate.Queue{Places: 1, MaxWait: time.Second}}},
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
			if err := s.Adjust(context.Background(), d.Receipt, []tidegate.Check{c}); err != nil {
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
		if err := s.Adjust(context.Background(), d.Receipt, []tidegate.Check{more}); err != nil {
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

// What somebody else has reset or given back is not held against a key in an outage, once the backend has told of it.
func TestReturnElsewhereIsKnownInAnOutage(t *testing.T) {
	const events = 100
	for _, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingLog, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.Quota} {
		for _, refused := range []bool{false, true} {
			for _, after := range []int{1, 5, 50} {
				for _, entries := range []int{0, -1} { // with and without remembered refusals
					synctest.Test(t, func(t *testing.T) {
						time.Sleep(5 * time.Minute) // not at the edge of a window
						spec := tidegate.Spec{Name: "l", Algorithm: a, Events: events, Period: time.Hour}
						if a == tidegate.Quota {
							spec.Period, spec.Calendar = 0, tidegate.Day
						}
						l := tidegate.MustLimit(spec)
						way := &faulty{server: new(common)}
						n := newNode(way, forFew(Options{DenyEntries: entries}))
						defer n.Close()
						spend(t, n, l, "k", events)
						if refused {
							spend(t, n, l, "k", 3)
						}
						time.Sleep(2 * maxDenial)
						if err := way.server.store().Reset(t.Context(), []tidegate.Check{{Key: "k", Limit: l, Cost: 1}}); err != nil {
							t.Fatal(err)
						}
						if got := spend(t, n, l, "k", after); got != after {
							t.Fatalf("%s: %d admitted of %d after a reset", a, got, after)
						}
						way.set(broken)
						// Less than 1/seenLeast is not remembered.
						if got, want := spend(t, n, l, "k", 2*events), events-after; got < want || got > want+events/seenLeast {
							t.Errorf("%s, refused before the reset %t, %d used since: %d admitted in an outage, want %d", a, refused, after, got, want)
						}
					})
				}
			}
		}
	}
}

// An admission that was asked for before a refusal does not undo it, in whatever order their replies come.
func TestRefusalAfterAnAdmissionStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(newSlow(), forFew(Options{}))
		defer n.Close()
		c := checkOf(10, time.Hour, tidegate.FixedWindow)
		s := n.newStreamLocked(&n.shards[0], 1, []tidegate.Check{c}, 1, coalescible|remembered)
		time.Sleep(time.Minute)
		admitted := tidegate.Decision{OK: true, Granted: 1, Limit: c.Limit, Remaining: 5, Receipt: tidegate.Receipt{At: 1}}
		f := func(asked, want time.Duration) {
			t.Helper()
			n.remember(&call{stream: s, stamp: n.stamp()}, &tidegate.Decision{Limit: c.Limit, RetryAfter: want, Receipt: tidegate.Receipt{At: 1}})
			asked += n.now()
			time.Sleep(time.Millisecond)
			n.see(s.checks, &admitted, asked)
			if _, found := n.stillRefused(&c, n.now()); found != (asked < n.now()-time.Millisecond) {
				t.Errorf("asked at %s, told at %s: still refused %t", asked, n.now(), found)
			}
		}
		f(-time.Millisecond, time.Minute)
		f(time.Microsecond, time.Minute)
	})
}
