package redis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/tallytest"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

func eventualLimit(name string, period time.Duration) *tidegate.Limit {
	return tidegate.MustLimit(tidegate.Spec{
		Name: name, Scope: "user", Events: 100, Period: period, Algorithm: tidegate.SubWindows,
		Terms: &tidegate.Terms{Handling: tidegate.Handling{Consistency: tidegate.Eventual}},
	})
}

// openTallies opens the tallies behind a URL.
func openTallies(t *testing.T, url string) (chain.Tallies, *Store) {
	t.Helper()
	s, err := Open(Config{URL: url, Deadline: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return in(s).Tallies(), s
}

func TestTallies(t *testing.T) {
	t.Parallel()
	urls := map[string]string{
		"single":  "redis://" + testdep.Redis(t).Addr,
		"cluster": "redis-cluster://" + testdep.RedisCluster(t, 3, 0)[0].Addr,
	}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			tallytest.Run(t, func(t *testing.T) chain.Tallies {
				tallies, _ := openTallies(t, url)
				return tallies
			})
		})
	}
}

// A key that holds something else concerns its own counter alone.
func TestTallyOfAnotherType(t *testing.T) {
	server := testdep.Redis(t)
	tallies, s := openTallies(t, "redis://"+server.Addr)
	l := eventualLimit("api", time.Minute)
	now := time.Now().UnixMicro()
	tally := func(key string) chain.Tally {
		return chain.Tally{
			Limit: l, Key: key, Instance: [2]uint64{1, 2}, Number: 1,
			Parts: []chain.TallyPart{{Start: now, End: now + 1e9, Count: 3}},
		}
	}
	one := tally("list")
	server.Do("RPUSH", fleetTallies{s}.key(&one), "x")
	one = tally("text")
	server.Do("SET", fleetTallies{s}.key(&one), "x")
	all := []chain.Tally{tally("list"), tally("good"), tally("text")}
	if err := tallies.Exchange(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	if all[0].Err == nil || all[1].Err != nil || all[2].Err == nil || len(all[1].Answer.Totals) != 1 {
		t.Errorf("%v, %+v, %v", all[0].Err, all[1], all[2].Err)
	}
}

// Numbers that a script cannot count with are refused, and nothing is sent.
func TestTallyOutOfRange(t *testing.T) {
	server := testdep.Redis(t)
	tallies, _ := openTallies(t, "redis://"+server.Addr)
	l := eventualLimit("api", time.Minute)
	for _, bad := range []chain.Tally{
		{Key: "a"},
		{Limit: l, Number: 1 << 53},
		{Limit: l, Generation: -1},
		{Limit: l, Demand: -1},
		{Limit: l, Parts: []chain.TallyPart{{Start: 1, End: 2, Count: -1}}},
		{Limit: l, Parts: []chain.TallyPart{{Start: 1 << 53, End: 2}}},
	} {
		all := []chain.Tally{bad}
		if err := tallies.Exchange(t.Context(), all); err != nil || all[0].Err == nil {
			t.Errorf("%+v: %v, %v", bad, err, all[0].Err)
		}
	}
	if n := server.Do("DBSIZE"); n != "0" {
		t.Errorf("%s keys were written", n)
	}
	if err := tallies.Exchange(t.Context(), make([]chain.Tally, chain.MaxTallies+1)); err == nil {
		t.Error("too many are sent at once")
	}
}

// Keys end with the last part that matters. Many instances, and those that are gone, do not make them
// grow for ever.
func TestTallyEnds(t *testing.T) {
	server := testdep.Redis(t)
	tallies, s := openTallies(t, "redis://"+server.Addr)
	l := eventualLimit("api", time.Minute)
	var key string
	for i := range 200 {
		now := time.Now().UnixMicro()
		one := chain.Tally{Limit: l, Key: "ann", Instance: [2]uint64{uint64(i), 1}, Number: 1}
		end := now + 1_000 // over when the next one comes, or the one after
		if i == 199 {
			end = now + 40e6
		}
		one.Parts = []chain.TallyPart{{Start: now, End: end, Count: 1}}
		if err := tallies.Exchange(t.Context(), []chain.Tally{one}); err != nil {
			t.Fatal(err)
		}
		key = fleetTallies{s}.key(&one)
		time.Sleep(time.Until(time.UnixMicro(now + 2_000))) // Redis' clock goes on
	}
	if n, err := strconv.Atoi(server.Do("STRLEN", key)); err != nil || n > 300 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if seconds, err := strconv.Atoi(server.Do("TTL", key)); err != nil || seconds < 35 || seconds > 42 {
		t.Errorf("ends in %d s, %v", seconds, err)
	}
}

// What is counted under a key is named by its rule and subject, apart from other limits of both.
func TestTallyKey(t *testing.T) {
	s, err := New("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := map[string]bool{}
	for _, name := range []string{"api", "a:b"} {
		for _, period := range []time.Duration{time.Minute, time.Hour} {
			for _, user := range []string{"ann", "b}{b", ""} {
				key := fleetTallies{s}.key(&chain.Tally{Limit: eventualLimit(name, period), Key: user})
				k, ok := parseKey("tg", key)
				if !ok || k.Rule != name || k.Kind != "tally" || seen[key] || strings.Count(key, "{") != 1 {
					t.Errorf("%q is read as %+v", key, k)
				}
				seen[key] = true
			}
		}
	}
	if len(seen) != 12 {
		t.Error(fmt.Sprint(seen))
	}
}
