package redis

import (
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

type vector []tidegate.Check

func (v vector) Match(_ *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return append(dst, v...)
}

// Tries that are in flight on one node hold places on all, and block nobody anywhere;
// failures that one node has seen block on all.
func TestTriesInFlightElsewhereBlockNobody(t *testing.T) {
	server := testdep.Redis(t)
	block := tidegate.MustLimit(tidegate.Spec{Name: "login", Scope: "block", Events: 1, Period: 15 * time.Minute})
	limit := tidegate.MustLimit(tidegate.Spec{Name: "login", Events: 5, Period: time.Hour, Terms: &tidegate.Terms{
		AtEnd: tidegate.AtEnd{Block: block, Counts: []tidegate.StatusRange{{From: 401, To: 401}}},
	}})
	var nodes []*tidegate.Gate
	for range 3 {
		s, err := Open(Config{Addrs: []string{server.Socket}, Prefix: "fleet", Deadline: patient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		nodes = append(nodes, tidegate.NewGate(vector{{Key: "office", Limit: limit, Cost: 1}, {Key: "office", Limit: block}}, s))
	}
	round := func(status int) {
		t.Helper()
		var flying []*tidegate.Visit
		for i := range 5 {
			d, v := nodes[i%2].Enter(t.Context(), &tidegate.Request{})
			if !d.OK {
				t.Fatalf("try %d: %+v", i+1, d)
			}
			flying = append(flying, v)
		}
		for i, node := range nodes {
			if d := node.Decide(t.Context(), &tidegate.Request{}); d.OK || d.RetryAfter > time.Second {
				t.Errorf("node %d while five are in flight: %+v", i, d)
			}
		}
		for _, v := range flying {
			if err := v.End(tidegate.Outcome{Status: status}); err != nil {
				t.Fatal(err)
			}
		}
	}
	round(200)
	round(401)
	for i, node := range nodes {
		if d := node.Decide(t.Context(), &tidegate.Request{}); d.OK || d.RetryAfter < 14*time.Minute {
			t.Errorf("node %d after five failures: %+v", i, d)
		}
	}
}
