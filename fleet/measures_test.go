package fleet_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/rules"
)

// steered is instances of a fleet with rules, and measures beyond them.
type steered struct {
	*testing.T
	lives []*rules.Live
	gates []*tidegate.Gate
}

func steer(t *testing.T, url, rule string) *steered {
	t.Helper()
	s := &steered{T: t}
	for range 3 {
		set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: user, "+rule+" }]\n"), rules.Config{})
		if err != nil {
			t.Fatal(err)
		}
		live := rules.NewLive(set)
		store := open(t, url, fleet.Options{Deadline: patient, Instances: func() int { return 3 }})
		s.lives, s.gates = append(s.lives, live), append(s.gates, tidegate.NewGate(live, store))
	}
	return s
}

// order puts measures in force at all instances.
func (s *steered) order(all ...rules.Measure) {
	s.Helper()
	for _, live := range s.lives {
		if problems := live.SetMeasures(all); problems != nil {
			s.Fatal(problems)
		}
	}
}

type user string

func (u user) Value(name string) (string, bool) { return string(u), name == "header X-User" }

func (s *steered) ask(node int, cost int64) tidegate.Decision {
	s.Helper()
	d := s.gates[node].Decide(context.Background(), &tidegate.Request{Method: "GET", Path: "/", Values: user("ann"), Cost: cost})
	if d.Err != nil {
		s.Fatal(d.Err)
	}
	return d
}

// usedUp asks until every instance remembers that it was refused, and returns how often it was
// not.
func (s *steered) usedUp(cost int64) (admitted int) {
	s.Helper()
	for node := range s.gates {
		for tries := 0; ; tries++ {
			d := s.ask(node, cost)
			if d.OK {
				admitted++
			}
			if d.Receipt.Origin == tidegate.OriginRemembered {
				break
			}
			if tries > 1000 {
				s.Fatalf("instance %d remembers no refusal: %+v", node, d)
			}
		}
	}
	return admitted
}

func more(limit string) rules.Measure {
	return rules.Measure{ID: "o-1", Kind: rules.Override, As: map[string]string{"user": "ann"}, Rule: "api", Limits: []string{limit}, Reason: "a test"}
}

// An override is in effect at the next request, although every instance remembers refusals and
// has the counters of the limit before; when it ends, so is the limit of the rule.
func TestOverrideOfAFleet(t *testing.T) {
	server := testdep.Redis(t)
	kinds := map[string][2]string{
		"auto":           {"limits: 100/8000h", "400/8000h"},
		"token_bucket":   {"limits: { rate: 100/8000h, algorithm: token_bucket }", "400/8000h"},
		"fixed_window":   {"limits: { rate: 100/8000h, algorithm: fixed_window }", "400/8000h"},
		"sliding_log":    {"limits: { rate: 100/8000h, algorithm: sliding_log }", "400/8000h"},
		"sliding_window": {"limits: { rate: 100/8000h, algorithm: sliding_window }", "400/8000h"},
		"sub_windows":    {"limits: { rate: 100/8000h, algorithm: sub_windows }", "400/8000h"},
		"quota":          {"quota: 100/year", "400/year"},
		"queued":         {"limits: { rate: 100/8000h, algorithm: sliding_log }, queue: { places: 9, max_wait: 5s }", "400/8000h"},
		"several":        {"limits: [100/8000h, 90000/hour]", "400/8000h"},
		"split":          {"limits: { rate: 300/8000h, algorithm: fixed_window }, consistency: split", "1200/8000h"},
	}
	n := 0
	for name, kind := range kinds {
		n++
		url := fmt.Sprintf("redis://%s?prefix=m%d", server.Addr, n)
		t.Run(name, func(t *testing.T) {
			s := steer(t, url, kind[0])
			all, first, then := s.usedUp, 4, 12
			switch name {
			case "queued": // refusals are not remembered where requests wait
				all = s.refused
			case "split": // each instance counts its third
				all, first, then = s.refused, 12, 36
			}
			if got := all(25); got != first {
				t.Fatalf("%d are admitted, want %d", got, first)
			}
			for range 2 {
				s.order(more(kind[1]))
				if then > 0 {
					for node := range s.gates {
						if d := s.ask(node, 25); !d.OK {
							t.Fatalf("instance %d refuses after the override: %+v", node, d)
						}
						then--
					}
				}
				if got := all(25); got != then {
					t.Fatalf("%d more are admitted, want %d", got, then)
				}
				then = 0 // they are used up, and do not come back
				s.order()
				for node := range s.gates {
					if d := s.ask(node, 25); d.OK || d.Limit.Events >= 400 && name != "split" {
						t.Fatalf("instance %d admits after the end: %+v", node, d)
					}
				}
			}
			unlimited := more("unlimited")
			s.order(unlimited)
			for node := range s.gates {
				if d := s.ask(node, 25); !d.OK {
					t.Fatalf("instance %d: %+v", node, d)
				}
			}
			s.order()
			if d := s.ask(0, 25); d.OK {
				t.Fatalf("%+v", d)
			}
		})
	}
}

// refused asks each instance until it refuses, and returns how often it did not.
func (s *steered) refused(cost int64) (admitted int) {
	for node := range s.gates {
		for s.ask(node, cost).OK {
			admitted++
		}
	}
	return admitted
}

// A limit that is small enough for a log of timestamps is counted in parts under an override that
// is not: in the same counter, whichever instance has which.
func TestOverrideOfASmallLimit(t *testing.T) {
	s := steer(t, "redis://"+testdep.Redis(t).Addr, "limits: 50/8000h")
	if got := s.usedUp(5); got != 10 {
		t.Fatalf("%d are admitted, want 10", got)
	}
	s.lives[0].SetMeasures([]rules.Measure{more("5000/8000h")}) // the others have not heard of it
	if d := s.ask(0, 4000); !d.OK || d.Remaining != 950 {
		t.Fatalf("%+v", d)
	}
	for node := 1; node < 3; node++ {
		if d := s.ask(node, 5); d.OK {
			t.Fatalf("instance %d: %+v", node, d)
		}
	}
	s.order(more("5000/8000h"))
	if d := s.ask(1, 900); !d.OK || d.Remaining != 50 {
		t.Fatalf("%+v", d)
	}
	s.order()
	for node := range s.gates {
		if d := s.ask(node, 1); d.OK {
			t.Fatalf("instance %d: %+v", node, d)
		}
	}
}

// What was taken ahead under one limit is not used under the other: not more than one lease of
// each instance passes after an override has ended.
func TestOverrideOfALeasedLimit(t *testing.T) {
	s := steer(t, "redis://"+testdep.Redis(t).Addr, "limits: 6000/minute, consistency: leased")
	s.refused(1000)
	for node := range s.gates { // they take ahead what there is
		for range 50 {
			s.ask(node, 1)
		}
	}
	s.order(more("60000/minute"))
	for node := range s.gates {
		if d := s.ask(node, 10_000); !d.OK { // more than comes back until the end, though that take half a minute
			t.Fatalf("instance %d: %+v", node, d)
		}
		for range 2000 { // until much of it is decided from leases
			if d := s.ask(node, 1); !d.OK {
				t.Fatalf("instance %d: %+v", node, d)
			}
		}
	}
	s.order()
	for node := range s.gates {
		late := 0
		for s.ask(node, 1).OK {
			late++
		}
		if late > 20 { // a lease has 10 events: 100 ms of the limit
			t.Errorf("instance %d admits %d after the end", node, late)
		}
	}
}

// An override ends at its instant by itself, and a ban refuses although Redis is gone.
func TestMeasuresOfAFleetEnd(t *testing.T) {
	server := testdep.Redis(t)
	s := steer(t, "redis://"+server.Addr, "limits: 100/8000h")
	s.usedUp(25)
	m := more("unlimited")
	m.Until = time.Now().Add(700 * time.Millisecond)
	s.order(m)
	for node := range s.gates {
		for {
			before := time.Now()
			d := s.ask(node, 25)
			after := time.Now()
			if !d.OK && after.Before(m.Until) || d.OK && !before.Before(m.Until) {
				t.Fatalf("instance %d, %s after the end: %+v", node, before.Sub(m.Until), d)
			}
			if !d.OK {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	s.order(rules.Measure{ID: "b-1", Kind: rules.Ban, As: map[string]string{"user": "ann"}, Reason: "a test"})
	gone := &steered{T: t}
	for _, live := range s.lives {
		gone.lives, gone.gates = append(gone.lives, live), append(gone.gates, tidegate.NewGate(live, open(t, "redis://"+closedPort(t), fleet.Options{Deadline: patient})))
	}
	for node := range s.gates {
		for _, all := range []*steered{s, gone} {
			if d := all.ask(node, 25); d.OK || !d.Never || d.Limit.Terms.Rule != rules.BanRule {
				t.Errorf("instance %d: %+v", node, d)
			}
		}
	}
}

// closedPort returns an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
