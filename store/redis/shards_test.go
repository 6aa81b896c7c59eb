package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/tallytest"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

// someShards starts servers, each a shard.
func someShards(t testing.TB, names ...string) (servers []*testdep.RedisServer, shards []Shard) {
	t.Helper()
	for _, name := range names {
		s := testdep.Redis(t)
		servers, shards = append(servers, s), append(shards, Shard{name, "unix://" + s.Socket})
	}
	return servers, shards
}

func TestConformanceShards(t *testing.T) {
	testdep.SkipUnderRace(t) // TestConformanceMovingShards is not
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c")
	storetest.Run(t, pretending(Config{Shards: shards}), storetest.Brief())
}

// While shards are changed, a store that asks two owners is one like any other.
func TestConformanceMovingShards(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c", "d")
	storetest.Run(t, pretending(Config{Shards: shards, Was: shards[:3]}), storetest.Brief())
	storetest.Run(t, pretending(Config{Shards: shards[1:], Was: shards[:1]}), storetest.Brief())
}

// Sentinels may stand before a shard, and TLS is as a URL says.
func TestShardOfSentinels(t *testing.T) {
	t.Parallel()
	_, sentinels := testdep.RedisSentinel(t, 1)
	var hosts []string
	for _, s := range sentinels {
		hosts = append(hosts, s.Addr)
	}
	_, shards := someShards(t, "a")
	shards = append(shards, Shard{"b", "redis-sentinel://" + strings.Join(hosts, ",") + "/mymaster"})
	s := openTest(t, Config{Shards: shards})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := tidegate.PerHour(3)
	for i := range 50 {
		if d := mustTake(t, s, 5, tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1}); d.Granted != 3 {
			t.Errorf("key %d: %+v", i, d)
		}
	}
}

func TestShardsThatCannotBe(t *testing.T) {
	a, b := Shard{"a", "redis://h1"}, Shard{"b", "redis://h2"}
	f := func(c Config, want string) {
		t.Helper()
		if s, err := Open(c); err == nil || s != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	f(Config{Shards: []Shard{a}}, "one shard")
	f(Config{Shards: []Shard{a, {"", "redis://h2"}}}, "no name")
	f(Config{Shards: []Shard{a, {"a", "redis://h2"}}}, "two shards are called a")
	f(Config{Shards: []Shard{a, {"b", "redis://h1:6379"}}}, "shards a and b are the same server")
	f(Config{Shards: []Shard{a, {"b b", "redis://h2"}}}, `name "b b"`)
	f(Config{Shards: []Shard{a, {"b", ""}}}, "shard b: no address")
	f(Config{Shards: []Shard{a, {"b", "http://h2"}}}, "shard b: the URL must begin with")
	f(Config{Shards: []Shard{a, {"b", "redis-cluster://h2,h3"}}}, "shard b: it is a cluster")
	f(Config{Shards: []Shard{a, {"b", "redis://h2?prefix=x"}}}, "give all the same")
	f(Config{Shards: []Shard{a, b}, URL: "redis://h3"}, "keep one of them")
	f(Config{Shards: []Shard{a, b}, Addrs: []string{"h3:6379"}}, "keep one of them")
	f(Config{Shards: []Shard{a, b}, PasswordFile: "/nowhere"}, "shard a: read the password")
	f(Config{Was: []Shard{a, b}}, "no present ones")
	f(Config{Shards: []Shard{a, b}, Was: []Shard{b, a}}, "the former shards are the present ones")
	f(Config{Shards: []Shard{a, b}, Was: []Shard{{"a", "redis://h3"}}}, "a name is one server")
	f(Config{Shards: []Shard{a, b}, Was: []Shard{{"c", ""}}}, "former shards: shard c: no address")
	many := make([]Shard, 65)
	for i := range many {
		many[i] = Shard{fmt.Sprint(i), fmt.Sprint("redis://h", i)}
	}
	f(Config{Shards: many}, "at most 64")
	for _, was := range [][]Shard{nil, {a}, {{"a", ""}}, {a, {"c", "redis://h3"}}, {{"c", "redis://h3"}}} {
		s, err := Open(Config{Shards: []Shard{a, b}, Was: was})
		if err != nil {
			t.Errorf("%+v: %v", was, err)
			continue
		}
		_ = s.Close()
	}
}

// Keys are spread over shards, found again by a store with another order of the list, and
// listed once. A request over several is charged to all or to none.
func TestShardsHaveTheirKeys(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c")
	c := Config{Shards: shards, Prefix: "own", Deadline: patient}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c.Shards = []Shard{shards[2], shards[0], shards[1]}
	other, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l := tidegate.MustLimit(tidegate.Spec{Name: "each", Scope: "user", Events: 5, Period: time.Hour, Algorithm: tidegate.TokenBucket})
	const users = 300
	for i := range users {
		check := tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1}
		if a, b := mustTake(t, s, 3, check), mustTake(t, other, 3, check); a.Granted != 3 || b.Granted != 2 {
			t.Errorf("user %d: %d and %d granted, want 3 and 2", i, a.Granted, b.Granted)
		}
		if a, b := in(s).Servers()[in(s).Server(l, check.Key)], in(other).Servers()[in(other).Server(l, check.Key)]; a != b {
			t.Errorf("user %d lives on %s, and on %s", i, a, b)
		}
	}
	for i, server := range servers {
		if n := len(strings.Fields(server.Do("KEYS", "own:each:*"))); n < users/6 || n > users/2 {
			t.Errorf("shard %s has %d of %d keys", shards[i].Name, n, users)
		}
	}
	// What an earlier list of shards left behind is not listed.
	key := anyKey(servers[1], "own:each:*")
	servers[0].Do("SET", key, "stale")
	found := make(map[string]int)
	for k, err := range s.Keys(t.Context(), "each") {
		if err != nil {
			t.Fatal(err)
		}
		found[k.Subject]++
	}
	for i := range users {
		if n := found[fmt.Sprint("user=", i)]; n != 1 {
			t.Errorf("user %d is listed %d times", i, n)
		}
	}
	info, err := s.Info(t.Context())
	if err != nil || len(info) != 3 || slices.IndexFunc(info, func(i Info) bool { return i.Server == "b" }) < 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

// anyKey is a key like a pattern.
func anyKey(s *testdep.RedisServer, pattern string) string {
	return strings.Fields(s.Do("KEYS", pattern))[0]
}

// Limits of several subjects hold together over shards, with what is charged for a refused
// request given back.
func TestShardsSubjects(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c")
	for name, c := range map[string]Config{
		"at rest": {Shards: shards},
		"moving":  {Shards: shards, Was: shards[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, c)
			const users, each, all = 6, 10, 40
			var admitted [users]atomic.Int64
			var asked sync.WaitGroup
			for worker := range 8 {
				asked.Go(func() {
					for i := range 60 {
						u := (i + worker) % users
						checks := threeSubjects(fmt.Sprint("u", u), fmt.Sprint("10.0.0.", u), tidegate.SlidingWindow, each, all)
						d, err := s.Take(context.Background(), checks, 1+i%2)
						if err != nil {
							t.Errorf("Take: %v", err)
						}
						admitted[u].Add(d.Granted)
					}
				})
			}
			asked.Wait()
			var sum int64
			for i := range users {
				n := admitted[i].Load()
				sum += n
				checks := threeSubjects(fmt.Sprint("u", i), fmt.Sprint("10.0.0.", i), tidegate.SlidingWindow, each, all)
				for _, c := range checks[:2] {
					if got := left(t, s, c); n > each || got != each-n {
						t.Errorf("%s of user %d: %d of %d admitted, and %d left", c.Limit, i, n, each, got)
					}
				}
			}
			if got := left(t, s, threeSubjects("", "", tidegate.SlidingWindow, each, all)[2]); sum > all || got != all-sum {
				t.Errorf("%d of %d admitted, and %d left", sum, all, got)
			}
		})
	}
}

// Every shard lists the instances; with one of them gone the others do.
func TestShardsHeartbeats(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c")
	s, more := openTest(t, Config{Shards: shards}), openTest(t, Config{Shards: shards})
	more.prefix = s.prefix
	beat := func(s *Store, id string) (chain.Roster, error) {
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		return in(s).Beat(ctx, chain.Heartbeat{ID: id, TTL: time.Hour, About: "I am " + id})
	}
	if _, err := beat(s, "one"); err != nil {
		t.Fatal(err)
	}
	if r, err := beat(more, "two"); err != nil || r.Live != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for i, server := range servers {
		if n := server.Do("ZCARD", s.nodeSet()); n != "2" {
			t.Errorf("shard %s lists %s instances", shards[i].Name, n)
		}
	}
	servers[0].Kill()
	r, err := beat(s, "one")
	if r.Live != 2 || err == nil || !strings.Contains(err.Error(), "a: ") || strings.Contains(err.Error(), "b: ") {
		t.Errorf("with a gone: %+v, %v", r, err)
	}
	entries, err := in(s).Entries(t.Context())
	if len(entries) != 2 || entries[0].About != "I am one" || err == nil {
		t.Errorf("with a gone: %+v, %v", entries, err)
	}
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "a (") {
		t.Errorf("a shard that is gone answers: %v", err)
	}
	if err := in(s).Leave(t.Context(), "one"); err == nil {
		t.Error("a shard that is gone has forgotten an instance")
	}
	if n := servers[1].Do("ZCARD", s.nodeSet()); n != "1" {
		t.Errorf("%s instances are listed after one has left", n)
	}
}

// The instances are those that any server lists: each server may miss some that cannot reach it.
func TestShardsHeartbeatsAreUnited(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c")
	s := openTest(t, Config{Shards: shards})
	later := fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
	list := func(server int, ids ...string) {
		servers[server].Do("DEL", s.nodeSet())
		for _, id := range ids {
			servers[server].Do("ZADD", s.nodeSet(), later, id)
		}
	}
	f := func(live, rank int, missing int) {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		r, err := in(s).Beat(ctx, chain.Heartbeat{ID: "m", TTL: time.Hour})
		var missed unanswered
		if r.Live != live || r.Rank != rank || errors.As(err, &missed) != (missing > 0) || len(missed) != missing {
			t.Errorf("rank %d of %d, %v; want %d of %d, and %d servers away", r.Rank, r.Live, err, rank, live, missing)
		}
	}
	f(1, 0, 0)
	list(0, "x", "z")
	list(1, "y", "z")
	list(2, "x", "y")
	f(4, 0, 0)
	list(0, "a", "z")
	list(1, "b", "z")
	list(2)
	f(4, 2, 0)
	// Too many to be named: the longest list counts, and others add nothing to it.
	var many []string
	for i := range maxNamed {
		many = append(many, fmt.Sprint("n", i))
	}
	list(0, many...)
	f(1+maxNamed, 0, 0)
	list(0, many[1:]...)
	f(1+maxNamed-1+2, 1, 0) // b and z of another list
	servers[1].Kill()
	f(1+maxNamed-1, 0, 1)
}

// Shards exchange tallies like one server, and those of others do so while one is gone.
func TestShardsTallies(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c")
	t.Run("whole", func(t *testing.T) {
		shared, err := Open(Config{Shards: shards, Deadline: patient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.Close() })
		tallytest.Run(t, func(*testing.T) chain.Tallies { return in(shared).Tallies() })
	})
	s := openTest(t, Config{Shards: shards})
	tallies := in(s).Tallies()
	l := eventualLimit("each", time.Hour)
	var all []chain.Tally
	for i := range 30 {
		all = append(all, chain.Tally{Limit: l, Key: fmt.Sprint(i), Instance: tidegate.NewHandle(), Number: 1})
	}
	if err := tallies.Exchange(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	servers[0].Kill()
	if err := tallies.Exchange(t.Context(), all); err != nil {
		t.Error(err)
	}
	for _, one := range all {
		if gone := in(s).Servers()[in(s).Server(l, one.Key)] == "a"; gone != (one.Err != nil) {
			t.Errorf("key %s, on the shard that is gone: %t: %v", one.Key, gone, one.Err)
		}
	}
	if _, err := tallies.Time(t.Context()); err != nil {
		t.Errorf("the time with one shard gone: %v", err)
	}
}

// A shard that is silent holds up the tallies of others once a second and no more, also where its own are the
// only ones. When it is back, it is asked again.
func TestShardsTalliesWhileOneIsSilent(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c")
	s := openTest(t, Config{Shards: shards})
	s.endpoints[0].silent = DefaultGoneAfter // the others may be slow
	tallies := in(s).Tallies()
	l := eventualLimit("each", time.Hour)
	var all, its []chain.Tally
	for i := range 30 {
		one := chain.Tally{Limit: l, Key: fmt.Sprint(i), Instance: tidegate.NewHandle(), Number: 1}
		all = append(all, one)
		if in(s).Servers()[in(s).Server(l, one.Key)] == "a" {
			its = append(its, one)
		}
	}
	// exchange returns how many of the shard were answered, how many were left out, and how many of others
	// were not answered.
	exchange := func(some []chain.Tally) (answered, leftOut, failed int) {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), patient)
		defer end()
		if err := tallies.Exchange(ctx, some); err != nil {
			t.Errorf("the others answer: %v", err)
		}
		for _, one := range some {
			switch its := in(s).Servers()[in(s).Server(l, one.Key)] == "a"; {
			case its && one.Err == nil:
				answered++
			case errors.Is(one.Err, errSilent):
				leftOut++
			case !its && one.Err != nil:
				failed++
			}
		}
		return answered, leftOut, failed
	}
	if answered, _, failed := exchange(all); answered != len(its) || failed > 0 {
		t.Fatalf("%d of %d are answered, %d of others are not", answered, len(its), failed)
	}
	servers[0].Pause()
	for _, some := range [][]chain.Tally{all, its} {
		testdep.Eventually(t, "the silent shard is left out", func() bool {
			_, leftOut, failed := exchange(some)
			if failed > 0 {
				t.Errorf("%d of others are not answered", failed)
			}
			if leftOut > 0 && leftOut < len(its) {
				t.Errorf("%d of %d are left out", leftOut, len(its))
			}
			return leftOut > 0
		})
	}
	// So it is when its connection has been given up, and no new one is answered.
	time.Sleep(silence + 2*keepAlive)
	testdep.Eventually(t, "it is left out without a connection", func() bool {
		_, leftOut, _ := exchange(all)
		return leftOut > 0
	})
	servers[0].Resume()
	testdep.Eventually(t, "it is asked again", func() bool {
		answered, _, _ := exchange(all)
		return answered == len(its)
	})
}

// Shards may speak TLS, each with an authority and certificates of its own, beside others that do not.
// One whose certificate is not trusted concerns its own keys alone.
func TestShardsWithTLS(t *testing.T) {
	t.Parallel()
	servers, shards := someShards(t, "a", "b", "c")
	var cas []string
	for i := range 2 {
		cert, key := keyPair(t)
		port := testdep.FreePort(t)
		testdep.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
		shards[i].URL = "rediss://127.0.0.1:" + port + "?ca=" + cert + "&cert=" + cert + "&key=" + key
		cas = append(cas, cert)
	}
	s := openTest(t, Config{Shards: shards})
	l := tidegate.PerHour(3)
	const users = 60
	for i := range users {
		if d := mustTake(t, s, 4, tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1}); d.Granted != 3 {
			t.Errorf("%d of 3 are granted", d.Granted)
		}
	}
	if n := servers[2].Do("DBSIZE"); n == "0" || n == fmt.Sprint(users) {
		t.Errorf("the shard without TLS has %s of %d counters", n, users)
	}
	if r, err := in(s).Beat(t.Context(), chain.Heartbeat{ID: "one", TTL: time.Minute}); err != nil || r.Live != 1 {
		t.Errorf("%+v, %v", r, err)
	}

	shards[0].URL = strings.Replace(shards[0].URL, "ca="+cas[0], "ca="+cas[1], 1)
	wrong := openTest(t, Config{Shards: shards})
	wrong.prefix = s.prefix
	failed := 0
	for i := range users {
		c := tidegate.Check{Key: fmt.Sprint(i), Limit: l, Cost: 1}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		d, err := wrong.Take(ctx, []tidegate.Check{c}, 1)
		end()
		switch at := in(wrong).Servers()[in(wrong).Server(l, c.Key)]; {
		case at != "a" && (err != nil || d.OK):
			t.Errorf("a key of %s: %+v, %v", at, d, err)
		case at == "a" && (err == nil || !strings.Contains(err.Error(), "certificate")):
			t.Errorf("a key of a, whose certificate is not trusted: %+v, %v", d, err)
		case at == "a":
			failed++
		}
	}
	if failed == 0 || failed == users {
		t.Errorf("%d of %d keys are on the shard that is not trusted", failed, users)
	}
}
