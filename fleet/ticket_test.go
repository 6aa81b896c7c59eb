package fleet_test

import (
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

type held []tidegate.Check

func (h held) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, h...)
}

// A ticket that one process gave is settled, renewed and released at another, also where
// the rules there are others; whoever comes second is told so.
func TestTicketsAtAnotherProcess(t *testing.T) {
	f := func(t *testing.T, url string) {
		limit := func(spec tidegate.Spec, terms tidegate.Terms) *tidegate.Limit {
			spec.Terms = &terms
			return tidegate.MustLimit(spec)
		}
		tokens := limit(tidegate.Spec{Name: "tokens", Scope: "user", Events: 100, Period: time.Hour}, tidegate.Terms{Rule: "tokens"})
		wrong := limit(tidegate.Spec{Name: "login", Scope: "ip", Events: 5, Period: time.Hour, Algorithm: tidegate.TokenBucket},
			tidegate.Terms{Rule: "login", AtEnd: tidegate.AtEnd{Counts: []tidegate.StatusRange{{From: 401, To: 401}}}})
		slots := limit(tidegate.Spec{Name: "slots", Scope: "user", Events: 1, Period: time.Minute, Algorithm: tidegate.Concurrency}, tidegate.Terms{Rule: "slots"})
		checks := held{
			{Key: "ann", Limit: tokens, Cost: 60, Estimate: true}, {Key: "192.0.2.1", Limit: wrong, Cost: 1}, {Key: "ann", Limit: slots, Cost: 1},
		}
		o := fleet.Options{Deadline: patient}
		here, there := open(t, url, o), open(t, url, o)
		asked, other := tidegate.NewGate(checks, here), tidegate.NewGate(held{}, there)
		d, given := asked.Issue(t.Context(), &tidegate.Request{})
		if !d.OK || !given.Holds() {
			t.Fatalf("%+v %v", d, given)
		}
		text, err := given.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		ticket := new(tidegate.Ticket)
		if err := ticket.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if err := other.Renew(t.Context(), ticket); err != nil {
			t.Errorf("renewed at another: %v", err)
		}
		if d := asked.Decide(t.Context(), &tidegate.Request{}); d.OK {
			t.Errorf("the slot is held, and another got it: %+v", d)
		}
		outcome := tidegate.Outcome{Status: 200, Cost: 37, CostKnown: true}
		if err := other.Settle(t.Context(), ticket, outcome); err != nil {
			t.Errorf("settled at another: %v", err)
		}
		if err := asked.Settle(t.Context(), given, outcome); !errors.Is(err, tidegate.ErrSettled) {
			t.Errorf("settled twice: %v", err)
		}
		for l, want := range map[*tidegate.Limit]int64{tokens: 63, wrong: 5, slots: 1} {
			key := "ann"
			if l == wrong {
				key = "192.0.2.1"
			}
			if d := tidegate.New(there, l).Peek(t.Context(), key); d.Remaining != want || d.Err != nil {
				t.Errorf("%s: %+v, want %d left", l.Name, d, want)
			}
		}
	}
	t.Run("single", func(t *testing.T) { f(t, "redis://"+testdep.Redis(t).Addr) })
	t.Run("cluster", func(t *testing.T) { f(t, "redis-cluster://"+testdep.RedisCluster(t, 3, 0)[0].Addr) })
}
