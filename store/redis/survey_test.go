package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// versions are limits of one counter: as it was, lowered, raised.
func versions(a tidegate.Algorithm, scope string) (all []tidegate.Check) {
	for _, events := range []int64{6, 3, 12} {
		spec := tidegate.Spec{Name: a.String(), Scope: scope, Algorithm: a, Events: events, Period: 24 * time.Hour}
		c := tidegate.Check{}
		switch a {
		case tidegate.Quota:
			spec.Period, spec.Calendar = 0, tidegate.Month
		case tidegate.LeakyBucket:
			spec.Burst, c.MaxWait = events-1, 1000*time.Hour
		}
		c.Limit = tidegate.MustLimit(spec)
		all = append(all, c)
	}
	return all
}

// A survey of Redis says of every key what the memory store says of the same use, for every
// algorithm, and leaves every byte in Redis as it is; on one server and on a cluster.
func TestSurvey(t *testing.T) {
	t.Parallel()
	f := func(name string, c Config, dump func() string) {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
			c.pretend = func() time.Time { return now }
			s, twin := openTest(t, c), memory.Open(memory.Config{Now: c.pretend})
			var asked [][]tidegate.Check
			var names [][]string
			for a := tidegate.TokenBucket; a < tidegate.Deny; a++ {
				for _, scope := range []string{"user", "user,route"} {
					checks := versions(a, scope)
					asked = append(asked, checks)
					var keys []string
					for used := range 7 {
						key := fmt.Sprint("used ", used)
						if scope == "user,route" {
							key = tidegate.Key(key, "GET /{id}")
						}
						keys = append(keys, key)
						for range used {
							one := checks[0]
							one.Key, one.Cost = key, 1
							mustTake(t, s, 1, one)
							if _, err := twin.Take(context.Background(), []tidegate.Check{one}, 1); err != nil {
								t.Fatal(err)
							}
						}
					}
					names = append(names, keys)
				}
			}
			before := dump()
			look := func(s interface {
				Survey(context.Context, [][]tidegate.Check, [][]string, func(int, string, []int64)) ([]float64, error)
			},
			) (all []string) {
				seen, err := s.Survey(context.Background(), asked, names, func(i int, key string, left []int64) {
					all = append(all, fmt.Sprintf("%s %s %q %d", asked[i][0].Limit.Name, asked[i][0].Limit.Scope, key, left))
				})
				if err != nil || slices.ContainsFunc(seen, func(share float64) bool { return share != 1 }) {
					t.Fatal(seen, err)
				}
				slices.Sort(all)
				return all
			}
			got, want := look(s), look(twin)
			if len(want) != 6*len(asked) || !slices.Equal(got, want) {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Fatalf("Redis says %s, and memory %s", got[i], want[i])
					}
				}
				t.Errorf("Redis has %d keys, memory %d", len(got), len(want))
			}
			if after := dump(); after != before {
				t.Errorf("Redis has\n%q\nand had\n%q", after, before)
			}
		})
	}
	server := testdep.Redis(t)
	f("server", Config{Addrs: []string{server.Socket}}, func() string { return dumpKeys(server) })
	nodes := testdep.RedisCluster(t, 3, 0)
	f("cluster", clusterOf(nodes), func() (all string) {
		for _, n := range nodes {
			all += dumpKeys(n) + "\n"
		}
		return all
	})
}

// dumpKeys is a hash of every key with its value.
func dumpKeys(server *testdep.RedisServer) string {
	return server.Do("EVAL", "#!lua flags=allow-cross-slot-keys,no-writes\n"+`
local keys, all = redis.call('KEYS', '*'), {}
table.sort(keys)
for i, key in ipairs(keys) do all[i] = key .. '=' .. redis.call('DUMP', key) end
return #all .. ' keys ' .. redis.sha1hex(table.concat(all))`, "0")
}

// A key of which Redis has only the hash is counted and not named; others of the rule, and of
// other scopes, are left alone.
func TestSurveyOfOneScope(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Socket}})
	limit := func(scope string) *tidegate.Limit {
		return tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: scope, Events: 5, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	}
	long := fmt.Sprintf("%0100d", 1)
	for _, c := range []tidegate.Check{
		{Key: "ann", Limit: limit("user")},
		{Key: long, Limit: limit("user")},
		{Key: "192.0.2.1", Limit: limit("ip")},
		{Limit: limit("everyone")},
		{Key: tidegate.Key("ann", "x"), Limit: limit("user,route")},
		{Key: "ann", Limit: limit("")},
	} {
		c.Cost = 1
		mustTake(t, s, 1, c)
	}
	f := func(scope string, want ...string) {
		t.Helper()
		var got []string
		if _, err := s.Survey(context.Background(), [][]tidegate.Check{{{Limit: limit(scope)}}}, nil, func(_ int, key string, left []int64) {
			got = append(got, fmt.Sprintf("%q %d", key, left))
		}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", scope, got, want)
		}
	}
	f("user", `"" [4]`, `"ann" [4]`)
	f("ip", `"192.0.2.1" [4]`)
	f("everyone", `"" [4]`)
	f("user,route", `"3:ann1:x" [4]`)
	f("", `"ann" [4]`)
	f("nobody")
}

// Of more keys than are asked about, a sample is: it is told how large, and the estimate is
// close.
func TestSurveySamples(t *testing.T) {
	t.Parallel()
	c, err := newSurveyed("tg", []tidegate.Check{{Limit: tidegate.PerMinute(5)}})
	if err != nil {
		t.Fatal(err)
	}
	const keys = 100_000
	for range 2 { // a scan may list keys twice
		for i := range keys {
			c.add(fmt.Sprint("user=", i))
		}
	}
	if n := len(c.tags); n > maxSurveyed || n < maxSurveyed/3 {
		t.Errorf("a sample of %d", n)
	}
	if got := float64(len(c.tags)) / c.share(); got < keys*0.9 || got > keys*1.1 {
		t.Errorf("an estimate of %v keys, and there are %d", got, keys)
	}
}

// Whatever a rule is called, its keys are found, and no others.
func TestSurveyOfOddNames(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Addrs: []string{testdep.Redis(t).Socket}})
	names := []string{"", "plain", strings.Repeat("a long name ", 20), "#hash", "ünï %2F", "a:{b}:log:1h", "*", "[a-z]"}
	var asked [][]tidegate.Check
	for i, name := range names {
		c := tidegate.Check{Key: fmt.Sprint(i), Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{
			Name: name, Scope: "user", Events: 10, Period: 24 * time.Hour, Algorithm: tidegate.FixedWindow,
		})}
		mustTake(t, s, i+1, c)
		asked = append(asked, []tidegate.Check{{Limit: c.Limit}})
	}
	f := func(asked [][]tidegate.Check, first int) {
		t.Helper()
		found := make([]int, len(asked))
		if _, err := s.Survey(t.Context(), asked, nil, func(i int, key string, left []int64) {
			if found[i]++; key != fmt.Sprint(first+i) || left[0] != int64(9-first-i) {
				t.Errorf("%q: %q has %d left", names[first+i], key, left)
			}
		}); err != nil {
			t.Error(err)
		}
		for i, n := range found {
			if n != 1 {
				t.Errorf("%q: %d keys, want 1", names[first+i], n)
			}
		}
	}
	f(asked, 0)
	for i := range asked { // of one rule, Redis is asked for its keys alone
		f(asked[i:i+1], i)
	}
}
