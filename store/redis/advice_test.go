package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What helps is said of every call, whichever of several servers failed and in whatever
// order, once for each thing that is wrong.
func TestAdviceOfEveryCall(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	s := openTest(t, clusterOf(nodes))
	ctx := t.Context()
	slot := threeSubjects("ann", "10.0.0.1", tidegate.Concurrency, 10, 1000)
	held := mustTake(t, s, 1, slot...)
	estimate := threeSubjects("bob", "10.0.0.2", tidegate.FixedWindow, 10, 1000)
	for i := range estimate {
		estimate[i].Estimate, estimate[i].Cost = true, 4
	}
	reserved, err := s.Reserve(ctx, estimate, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	another, err := s.Reserve(ctx, estimate, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	all := func(command ...string) {
		for _, n := range nodes {
			n.Do(command...)
		}
	}
	all("CONFIG", "SET", "maxmemory", "1")
	f := func(what string, err error, want ...string) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "user_script") {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, w := range want {
			if n := strings.Count(err.Error(), w); n != 1 {
				t.Errorf("%s: %q is said %d times: %v", what, w, n, err)
			}
		}
		if errors.Is(err, tidegate.ErrCannotAsk) {
			t.Errorf("%s: a server that is out of memory passes for a question that cannot be asked: %v", what, err)
		}
	}
	const memory = "raise maxmemory"
	f("adjust", s.Adjust(ctx, reserved.Receipt, estimate), memory)
	f("renew", s.Renew(ctx, held.Receipt, slot), memory)
	f("settle", s.Settle(ctx, reserved.Receipt, 9), memory)

	// One subject cannot be asked about, and the server of another is out of memory.
	all("CONFIG", "SET", "maxmemory", "0")
	lim, err := s.compile(estimate[1].Limit)
	if err != nil {
		t.Fatal(err)
	}
	key := lim.name(estimate[1].Key)
	there := holder(t, nodes, nodes[0].Do("CLUSTER", "KEYSLOT", key))
	nodes[there].Do("DEL", key)
	nodes[there].Do("SET", key, "mine")
	for i, n := range nodes {
		if i != there {
			n.Do("CONFIG", "SET", "maxmemory", "1")
		}
	}
	const alien = "use another prefix"
	for range 5 { // whoever answers first
		f("adjust of both", s.Adjust(ctx, another.Receipt, estimate), memory, alien)
	}
	all("CONFIG", "SET", "maxmemory", "0")
	if err := s.Adjust(ctx, another.Receipt, estimate); !errors.Is(err, tidegate.ErrCannotAsk) || !strings.Contains(fmt.Sprint(err), alien) {
		t.Errorf("adjust of what cannot be asked about: %v", err)
	}
	reset := []tidegate.Check{estimate[0], estimate[2], {Key: estimate[1].Key, Limit: tidegate.MustLimit(tidegate.Spec{Name: estimate[1].Limit.Name, Scope: "ip", Events: 5, Period: time.Hour, Algorithm: tidegate.FixedWindow})}}
	lim, _ = s.compile(reset[2].Limit)
	nodes[there].Do("DEL", lim.name(reset[2].Key))
	nodes[there].Do("LPUSH", lim.name(reset[2].Key), "mine")
	if err := s.Reset(ctx, reset); !errors.Is(err, tidegate.ErrCannotAsk) || strings.Count(fmt.Sprint(err), alien) != 1 {
		t.Errorf("reset of what somebody else keeps: %v", err)
	}
}

// A server that has no EVAL repeats what it was sent: the text of a script is not for
// health checks and logs.
func TestErrorsQuoteNoScript(t *testing.T) {
	t.Parallel()
	for _, renamed := range []string{"EVAL", "EVALSHA"} {
		server := testdep.Redis(t, "--rename-command", renamed, "")
		s := openTest(t, Config{URL: "redis://" + server.Addr})
		for what, call := range map[string]func() error{
			"take":   func() error { _, err := s.Take(t.Context(), []tidegate.Check{one100}, 1); return err },
			"adjust": func() error { return s.Adjust(t.Context(), tidegate.Receipt{}, []tidegate.Check{one100}) },
			"beat": func() error {
				_, err := in(s).Beat(t.Context(), chain.Heartbeat{ID: "me", TTL: time.Second})
				return err
			},
		} {
			err := call()
			if err == nil || strings.Contains(err.Error(), "local ") || strings.Contains(err.Error(), "redis.call") || len(err.Error()) > 200 {
				t.Errorf("%s without %s: %v", what, renamed, err)
			}
			if !strings.Contains(fmt.Sprint(err), "runs no scripts") {
				t.Errorf("%s without %s: %v, want what to do", what, renamed, err)
			}
		}
	}
}
