package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// carried is the ticket as whoever asked brings it back.
func carried(t *testing.T, given *tidegate.Ticket) *tidegate.Ticket {
	t.Helper()
	text, err := given.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	ticket := new(tidegate.Ticket)
	if err := ticket.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	return ticket
}

// A slot that was given in an outage is renewed and released by the text of its ticket: while it
// is renewed nobody else gets it, and then somebody does.
func TestTicketsOfAnOutage(t *testing.T) {
	local := &tidegate.Terms{Rule: "slots", Handling: tidegate.Handling{OnStoreFailure: tidegate.FailLocal}}
	for name, terms := range map[string]*tidegate.Terms{"by its terms": local, "without terms": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 1, Period: time.Minute, Algorithm: tidegate.Concurrency, Terms: terms})
				wrong := tidegate.MustLimit(tidegate.Spec{Name: "login", Events: 5, Period: 24 * time.Hour, Algorithm: tidegate.TokenBucket, Terms: &tidegate.Terms{
					Rule: "login", Handling: local.Handling, AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}}},
				}})
				n := newNode(&faulty{fault: broken}, Options{})
				defer n.Close()
				gate := tidegate.NewGate(matched{{Key: "ann", Limit: slots, Cost: 1}, {Key: "ann", Limit: wrong, Cost: 1}}, n)
				d, given := gate.Issue(t.Context(), &tidegate.Request{})
				if !d.OK || d.Receipt.Origin != tidegate.OriginLocal {
					t.Fatalf("%+v", d)
				}
				ticket := carried(t, given)
				for range 4 {
					time.Sleep(40 * time.Second)
					if err := gate.Renew(t.Context(), ticket); err != nil {
						t.Errorf("renewed: %v", err)
					}
					if d := gate.Decide(t.Context(), &tidegate.Request{}); d.OK {
						t.Fatalf("the slot is held, and another got it: %+v", d)
					}
				}
				if err := gate.Settle(t.Context(), ticket, tidegate.Outcome{Status: 200}); err != nil {
					t.Errorf("settled: %v", err)
				}
				if d := tidegate.New(n, wrong).Peek(t.Context(), "ann"); d.Remaining != 5 {
					t.Errorf("%d of 5 are left when nothing counted", d.Remaining)
				}
				if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK {
					t.Errorf("the slot was released, and nobody gets it: %+v", d)
				}
			})
		})
	}
}

// Of a request over two servers, of which one was away, a node has counted a part itself. Another
// one says so, and does not give back what it has counted for others.
func TestTicketsOfAPartOfAnOutage(t *testing.T) {
	f := func(mode tidegate.FailMode, away string, want error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			terms := &tidegate.Terms{Rule: "slots", Handling: tidegate.Handling{OnStoreFailure: mode}}
			slots := tidegate.MustLimit(tidegate.Spec{Name: "slots", Events: 3, Period: time.Minute, Algorithm: tidegate.Concurrency, Terms: terms})
			c := newCluster("a:1", "b:2")
			c.move(1, away)
			n, other := newNode(c, Options{}), newNode(c, Options{})
			checks := matched{{Key: "here", Limit: slots, Cost: 1}, {Key: away, Limit: slots, Cost: 1}}
			for _, g := range []*Node{n, other} {
				spend(t, g, perSecond, "here", 1)
				degrade(t, g, c, 1, away)
			}
			_, given := tidegate.NewGate(checks, n).Issue(t.Context(), &tidegate.Request{})
			gate := tidegate.NewGate(checks, other)
			if d := gate.Decide(t.Context(), &tidegate.Request{}); !d.OK || d.Receipt.Apart == nil {
				t.Fatalf("%+v", d)
			}
			ticket := carried(t, given)
			if err := gate.Renew(t.Context(), ticket); !errors.Is(err, want) {
				t.Errorf("mode %d: renewed at another: %v, want %v", mode, err, want)
			}
			if err := gate.Release(t.Context(), ticket); !errors.Is(err, want) {
				t.Errorf("mode %d: released at another: %v, want %v", mode, err, want)
			}
			if err := tidegate.NewGate(checks, n).Release(t.Context(), carried(t, given)); err != nil {
				t.Errorf("mode %d: released where it was given: %v", mode, err)
			}
			if d, err := c.servers[0].server.store().Take(t.Context(), []tidegate.Check{{Key: "here", Limit: slots}}, 1); err != nil || d.Remaining != 2 {
				t.Errorf("mode %d: %d of 3 slots are free on the server that answers, and one is held: %v", mode, d.Remaining, err)
			}
			for g, free := range map[*Node]int64{n: 3, other: 2} {
				if mode != tidegate.FailLocal {
					continue
				}
				if d, err := g.local.Take(t.Context(), []tidegate.Check{{Key: away, Limit: slots}}, 1); err != nil || d.Remaining != free {
					t.Errorf("%d of 3 slots are free in a node, want %d: %v", d.Remaining, free, err)
				}
			}
			_, _ = n.Close(), other.Close()
		})
	}
	f(tidegate.FailLocal, "away", tidegate.ErrElsewhere)
	f(tidegate.FailLocal, "aw\xff\x00y", tidegate.ErrElsewhere)
	f(tidegate.FailOpen, "away", nil)
}
