package tidegate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// above is a limit of 2 a minute that gives way for 30 s, below one of 4.
func above(key string, cost int64) vector {
	limit := tidegate.MustLimit(tidegate.Spec{
		Name: "search", Scope: "user#nominal", Events: 2, Period: time.Minute, Terms: &tidegate.Terms{MaxOver: 30 * time.Second},
	})
	ceiling := tidegate.MustLimit(tidegate.Spec{Name: "search", Scope: "user", Events: 4, Period: time.Minute})
	return vector{{Key: key, Limit: limit, Cost: cost}, {Key: key, Limit: ceiling, Cost: cost}}
}

// clerk asks a store at seconds from the start.
type clerk struct {
	t     *testing.T
	store *memory.Store
	start time.Time
}

func newClerk(t *testing.T) *clerk { return &clerk{t, memory.New(), time.Now()} }

// ask is one request of a cost: "ok", "soft", "never", or after how long it is told to come back.
func (c *clerk) ask(second int, cost int64, want string) {
	c.t.Helper()
	time.Sleep(time.Until(c.start.Add(time.Duration(second) * time.Second)))
	gate := tidegate.NewGate(above("a", cost), c.store)
	told := gate.Peek(c.t.Context(), &tidegate.Request{})
	d := gate.Decide(c.t.Context(), &tidegate.Request{})
	if told.OK != d.OK || told.Soft != d.Soft || told.RetryAfter != d.RetryAfter || told.Never != d.Never {
		c.t.Errorf("at %d s: Peek told %+v, and then came %+v", second, told, d)
	}
	got := d.RetryAfter.String()
	switch {
	case d.Soft:
		got = "soft"
	case d.OK:
		got = "ok"
	case d.Never:
		got = "never"
	}
	if got != want {
		c.t.Errorf("at %d s, cost %d: %s, want %s", second, cost, got, want)
	}
}

// endGrace uses the limit up at 0, and the grace until it is over at 31.
func (c *clerk) endGrace() {
	c.t.Helper()
	c.ask(0, 2, "ok")
	c.ask(0, 1, "soft")
	c.ask(31, 1, "29s")
}

// estimatedAbove is above on an estimate.
func estimatedAbove(key string, cost int64) vector {
	checks := above(key, cost)
	for i := range checks {
		checks[i].Estimate = true
	}
	return checks
}

// What may pass above the limit passes for 30 s from the first that does. Then the limit is hard
// until it has had room for 30 s.
func TestGivesWayForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		c.ask(0, 1, "ok")
		c.ask(0, 1, "ok")
		c.ask(0, 1, "soft") // until 30
		c.ask(10, 1, "soft")
		c.ask(10, 1, "50s") // the ceiling is reached, and at 30 it is too late
		c.ask(60, 1, "ok")
		c.ask(60, 1, "ok")
		c.ask(60, 1, "1m0s")
		c.ask(120, 1, "ok") // room for one, from now on
		c.ask(149, 1, "ok")
		c.ask(149, 1, "31s") // used up before it had room for 30 s
		c.ask(180, 1, "ok")
		c.ask(180, 1, "29s")
		c.ask(209, 1, "ok")
		c.ask(300, 1, "ok") // room since 240
		c.ask(300, 1, "ok")
		c.ask(300, 1, "soft")
		c.ask(329, 1, "soft")
		c.ask(330, 1, "30s")
	})
}

// Passing is bounded by the first request that passes above, not by each.
func TestGraceEndsWhileAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		c.ask(0, 2, "ok")
		c.ask(29, 1, "soft")
		c.ask(58, 1, "soft")
		c.ask(59, 1, "1s")
		c.ask(60, 2, "ok")
		c.ask(89, 1, "31s") // there is room below the ceiling
	})
}

// A cost that is above the limit passes while that gives way, and is told when it does so again.
func TestCostAboveTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		c.ask(0, 3, "soft") // with room for 2 within the limit
		c.ask(20, 1, "ok")
		c.ask(30, 3, "30s") // the ceiling has room then
		c.ask(60, 3, "soft")
		c.ask(80, 1, "ok")
		c.ask(85, 3, "35s")
		c.ask(140, 2, "ok")
		c.ask(140, 1, "soft") // until 170, and no more until 200 + 30
		c.ask(170, 3, "1m0s")
		c.ask(170, 2, "30s")
		c.ask(170, 5, "never")
		c.ask(229, 3, "1s")
		c.ask(230, 3, "soft")
	})
}

// Another key, and another limit of the same rule, give way for themselves.
func TestGraceIsOfOneCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		c.endGrace()
		other := tidegate.NewGate(above("b", 3), c.store)
		if d := other.Decide(t.Context(), &tidegate.Request{}); !d.OK || !d.Soft {
			t.Errorf("another key: %+v", d)
		}
		hours := above("a", 3)
		for i := range hours {
			spec := hours[i].Limit.Spec
			spec.Period = time.Hour
			hours[i].Limit = tidegate.MustLimit(spec)
		}
		if d := tidegate.NewGate(hours, c.store).Decide(t.Context(), &tidegate.Request{}); !d.OK || !d.Soft {
			t.Errorf("another period: %+v", d)
		}
	})
}

// A request that has to leave something for others leaves it above the limit, too.
func TestGraceLeavesWhatIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		leaving := above("a", 1)
		for i := range leaving {
			leaving[i].Floor = 1
		}
		lower := tidegate.NewGate(leaving, c.store)
		ask := func(ok, soft bool) {
			t.Helper()
			if d := lower.Decide(t.Context(), &tidegate.Request{}); d.OK != ok || d.Soft != soft {
				t.Errorf("%+v, want admitted %t, soft %t", d, ok, soft)
			}
		}
		ask(true, false)
		ask(true, true)
		ask(true, true)
		ask(false, false) // one is left below the ceiling, and one below the limit
		c.ask(0, 1, "ok")
		c.ask(0, 1, "1m0s")
		c.ask(60, 1, "ok")
		ask(false, false) // hard: it leaves no room since 0
		c.ask(60, 1, "ok")
	})
}

// Whoever resets a key resets what is kept beside its counter.
func TestResetEndsAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		c.endGrace()
		var checks []tidegate.Check
		for _, check := range above("a", 1) {
			checks = append(checks, check)
			for _, l := range check.Limit.Beside() {
				checks = append(checks, tidegate.Check{Key: check.Key, Limit: l})
			}
		}
		if len(checks) != 4 {
			t.Fatalf("%d counters, want 4", len(checks))
		}
		if err := c.store.Reset(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
		c.ask(31, 2, "ok")
		c.ask(31, 2, "soft")
	})
}

// What is given back, or settled, is given back where it was charged.
func TestVisitAboveTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t)
		c.ask(0, 2, "ok")
		d, v := tidegate.NewGate(estimatedAbove("a", 2), c.store).Enter(t.Context(), &tidegate.Request{})
		if !d.Soft || v == nil {
			t.Fatalf("%+v, visit %v", d, v)
		}
		if err := v.End(tidegate.Outcome{CostKnown: true, Cost: 1}); err != nil {
			t.Fatal(err)
		}
		c.ask(1, 2, "59s")
		c.ask(1, 1, "soft")
		c.ask(60, 2, "ok")
	})
}

// A request that turns out to cost more than was estimated may use the limit up. Then the limit has no room
// from that on, and no other grace begins until it has had some: whoever settles, and however.
func TestSettledAboveTheEstimate(t *testing.T) {
	settles := map[string]func(*testing.T, *tidegate.Gate, tidegate.Outcome){
		"visit": func(t *testing.T, g *tidegate.Gate, o tidegate.Outcome) {
			d, v := g.Enter(t.Context(), &tidegate.Request{})
			if err := v.End(o); err != nil || !d.OK || d.Soft {
				t.Fatalf("%+v, %v", d, err)
			}
		},
		"ticket": func(t *testing.T, g *tidegate.Gate, o tidegate.Outcome) {
			d, ticket := g.Issue(t.Context(), &tidegate.Request{})
			if err := g.Settle(t.Context(), ticket, o); err != nil || !d.OK || d.Soft {
				t.Fatalf("%+v, %v", d, err)
			}
		},
		"ticket of another process": func(t *testing.T, g *tidegate.Gate, o tidegate.Outcome) {
			d, ticket := g.Issue(t.Context(), &tidegate.Request{})
			text, err := ticket.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			var read tidegate.Ticket
			if err := errors.Join(read.UnmarshalText(text), g.Settle(t.Context(), &read, o)); err != nil || !d.OK || d.Soft {
				t.Fatalf("%+v, %v", d, err)
			}
		},
	}
	for name, settle := range settles {
		t.Run(name, func(t *testing.T) {
			for _, cost := range []int64{2, 3} { // just used up, and more than that
				synctest.Test(t, func(t *testing.T) {
					c := newClerk(t)
					c.endGrace() // no other before 90
					time.Sleep(34 * time.Second)
					settle(t, tidegate.NewGate(estimatedAbove("a", 1), c.store), tidegate.Outcome{CostKnown: true, Cost: cost})
					c.ask(91, 1, "34s")
					c.ask(130, 1, "ok") // room since 125
					c.ask(160, 1, "ok")
					c.ask(160, 1, "soft")
				})
			}
		})
	}
}

// A store that fails while a limit may give way leaves the refusal as it is.
func TestGraceNeedsTheStore(t *testing.T) {
	store := &failsAfter{Store: memory.New()}
	gate := tidegate.NewGate(above("a", 2), store)
	if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK {
		t.Fatalf("%+v", d)
	}
	store.calls = 1 // that which refuses
	if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK || d.Err != nil || d.RetryAfter <= 0 {
		t.Errorf("the store failed behind the refusal: %+v", d)
	}
}

func TestMaxOverIsChecked(t *testing.T) {
	f := func(want string, spec tidegate.Spec, over time.Duration) {
		t.Helper()
		spec.Terms = &tidegate.Terms{MaxOver: over}
		_, err := tidegate.NewLimit(spec)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v above for %s: %v, want %q", spec, over, err, want)
		}
	}
	minutely := tidegate.Spec{Events: 2, Period: time.Minute}
	f("", minutely, time.Second)
	f("", minutely, 24*time.Hour)
	f("1s to 24h", minutely, time.Millisecond)
	f("1s to 24h", minutely, -time.Second)
	f("1s to 24h", minutely, 25*time.Hour)
	f("whole microseconds", minutely, time.Second+time.Nanosecond)
	f("leaky_bucket", tidegate.Spec{Events: 2, Period: time.Minute, Algorithm: tidegate.LeakyBucket}, time.Second)
	f("concurrency", tidegate.Spec{Events: 2, Period: time.Minute, Algorithm: tidegate.Concurrency}, time.Second)
	f("a week", tidegate.Spec{Events: 2, Period: 8 * 24 * time.Hour}, time.Second)
	f("", tidegate.Spec{Events: 2, Algorithm: tidegate.Quota, Calendar: tidegate.Week}, time.Second)
	f("a week", tidegate.Spec{Events: 2, Algorithm: tidegate.Quota, Calendar: tidegate.Month}, time.Second)
}

// failsAfter answers calls, and then fails; 0 fails never.
type failsAfter struct {
	*memory.Store
	calls int
}

func (s *failsAfter) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if s.calls > 0 {
		if s.calls--; s.calls == 0 {
			defer func() { s.calls = -1 }()
		}
	} else if s.calls < 0 {
		return tidegate.Decision{}, errors.New("down")
	}
	return s.Store.Take(ctx, checks, n)
}
