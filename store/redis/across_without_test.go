package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// batchOf is asks for one copy each, of many users.
func batchOf(l *tidegate.Limit, users int) []chain.Ask {
	asks := make([]chain.Ask, users)
	for i := range asks {
		asks[i] = chain.Ask{Checks: []tidegate.Check{{Key: fmt.Sprint("u", i), Limit: l, Cost: 1}}, Copies: 1}
	}
	return asks
}

// takeBatches takes from every user so often, and wants each time what is due.
func takeBatches(t *testing.T, s *Store, l *tidegate.Limit, times int) {
	t.Helper()
	for n := range times {
		asks := batchOf(l, maxBatch)
		if err := in(s).TakeBatch(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i, a := range asks {
			if want := l.Events - int64(n) - 1; a.Err != nil || !a.Granted.OK || a.Granted.Remaining != want {
				t.Fatalf("%s: user %d after %d: %+v, %v; want %d left", l, i, n+1, a.Granted, a.Err, want)
			}
		}
	}
}

// countingLaws are those of everyLaw that go in batches and let all pass at once, each with a
// name of its own.
func countingLaws(name string, events int64) (all []*tidegate.Limit) {
	for i := range everyLaw(name, events) {
		l := everyLaw(fmt.Sprint(name, i), events)[i]
		if l.Algorithm != tidegate.LeakyBucket && l.Algorithm != tidegate.Concurrency {
			all = append(all, l)
		}
	}
	return all
}

// settled waits until it is known of every master what it is able to do.
func settled(t *testing.T, s *Store) {
	t.Helper()
	testdep.Eventually(t, "all masters were tried", func() bool {
		s.batchOwner(s.prefix + ":")
		c := s.topology.current.Load()
		if c == nil {
			return false
		}
		for _, m := range c.masters {
			if m.support.now(time.Now()) == supportUnknown {
				return false
			}
		}
		return true
	})
}

// Servers that do not take scripts over several slots are asked one by one: those before
// Redis 7, and services that want every key declared.
func TestClusterOfOlderServers(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	var text atomic.Pointer[string] // what they say to such a script
	var refused atomic.Int64
	var men []*middleman
	c := Config{Cluster: true}
	for _, n := range nodes {
		m := newMiddleman(t, n.Addr, func(command []string) string {
			if len(command) > 1 && command[0] == "EVAL" && strings.HasPrefix(command[1], "#!") {
				refused.Add(1)
				return "-" + *text.Load() + "\r\n"
			}
			return ""
		})
		men = append(men, m)
		c.Addrs = append(c.Addrs, m.addr)
	}
	announce(t, func(i int, command ...string) string { return nodes[i].Do(command...) }, men)
	for _, reply := range []string{
		"ERR Error compiling script (new function): user_script:1: unexpected symbol near '#' ", // Redis 6.2
		"ERR Unexpected flag in script shebang: allow-cross-slot-keys",
		"ERR Lua scripts without any input keys are not supported",
		"ERR script tried accessing undeclared key",
		"NOPERM this user has no permissions to run the 'eval' command",
	} {
		text.Store(&reply)
		for _, n := range nodes {
			n.Do("SCRIPT", "FLUSH")
		}
		s := openTest(t, c)
		settled(t, s)
		refused.Store(0)
		for _, l := range countingLaws("api", 50) {
			takeBatches(t, s, l, 3)
		}
		if n := s.across.shared.Load(); n != 0 || refused.Load() != 0 {
			t.Errorf("%s: %d asks went in batches, and %d were refused one that had been told", reply, n, refused.Load())
		}
	}

	// The servers are replaced by older ones while batches are sent.
	reply := ""
	text.Store(&reply)
	for _, n := range nodes {
		n.Do("SCRIPT", "FLUSH")
	}
	open := new(atomic.Bool)
	open.Store(true)
	for _, m := range men {
		old := m.answer
		m.answer = func(command []string) string {
			if open.Load() {
				return ""
			}
			return old(command)
		}
		m.hangUp()
	}
	s := openTest(t, c)
	awaitBatches(t, s, 3)
	l := bucket("replaced", "user", 1000, 24*time.Hour)
	takeBatches(t, s, l, 3)
	shared := s.across.shared.Load()
	if shared == 0 {
		t.Fatal("no batch was sent: the test has lost its point")
	}
	reply = "ERR Error compiling script (new function): user_script:1: unexpected symbol near '#' "
	text.Store(&reply)
	open.Store(false)
	for _, n := range nodes {
		n.Do("SCRIPT", "FLUSH")
	}
	for n := range 3 {
		asks := batchOf(l, maxBatch)
		if err := in(s).TakeBatch(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i, a := range asks {
			if want := l.Events - int64(n) - 4; a.Err != nil || a.Granted.Remaining != want {
				t.Fatalf("user %d after %d: %+v, %v; want %d left", i, n+4, a.Granted, a.Err, want)
			}
		}
	}
	if s.across.notRun.Load() == 0 || s.across.shared.Load() != shared {
		t.Errorf("%d were asked alone, and %d in batches", s.across.notRun.Load(), s.across.shared.Load()-shared)
	}
}

// A server that lets a script write keys of other masters would count them twice: it is sent
// no batches.
func TestClusterThatDoesNotLook(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t) // which is no cluster, and takes any key
	var addrs []string
	answer := func(command []string) string {
		switch {
		case len(command) > 1 && command[0] == "CLUSTER" && strings.EqualFold(command[1], "SLOTS"):
			return slotsReply(addrs)
		case command[0] == "CLUSTER":
			return "-ERR unknown subcommand\r\n"
		}
		return ""
	}
	men := []*middleman{newMiddleman(t, server.Addr, answer), newMiddleman(t, server.Addr, answer)}
	addrs = []string{men[0].addr, men[1].addr}
	s := openTest(t, Config{Cluster: true, Addrs: addrs})
	settled(t, s)
	takeBatches(t, s, bucket("api", "user", 50, time.Hour), 3)
	if n := s.across.shared.Load(); n != 0 {
		t.Errorf("%d asks went in batches", n)
	}
}

// Users who may not touch all keys, or not run all commands, are served as well as without
// batches; whoever may use the keys of the prefix is served in batches.
func TestClusterACL(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	all := func(command ...string) {
		for _, n := range nodes {
			n.Do(command...)
		}
	}
	open := func(user, prefix string) *Store {
		c := clusterOf(nodes)
		c.Username, c.Password, c.Prefix, c.Deadline = user, "secret", prefix, time.Minute
		s, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	f := func(prefix string, batches bool, rules ...string) *Store {
		t.Helper()
		all(append([]string{"ACL", "SETUSER", prefix, "on", ">secret"}, rules...)...)
		s := open(prefix, prefix)
		settled(t, s)
		for _, l := range countingLaws("api", 50) {
			takeBatches(t, s, l, 3)
		}
		if n := s.across.shared.Load(); n > 0 != batches {
			t.Errorf("%v: %d asks went in batches", rules, n)
		}
		return s
	}
	f("ours", true, "~ours:*", "+evalsha", "+eval", "+time", "+get", "+setex", "+setrange", "+del", "+exists", "+scan", "+role",
		"+llen", "+lindex", "+lrange", "+rpush", "+ltrim", "+lrem", "+expire",
		"+zrange", "+zrangebyscore", "+zadd", "+zcount", "+zscore", "+zrem", "+zremrangebyscore", "+hello", "+ping", "+cluster")
	f("narrow", false, "~narrow:api*", "+@all")
	f("unseen", false, "~unseen:*", "+@all", "-exists")

	// Some keys are forbidden while batches are sent: those alone fail.
	s := f("later", true, "~later:*", "+@all")
	all("ACL", "SETUSER", "later", "resetkeys", "~later:api?:{u?}*", "~later:{*}")
	l := countingLaws("api", 50)[0]
	for range 2 { // also when it is careful
		asks := batchOf(l, maxBatch)
		before := s.across.shared.Load()
		if err := in(s).TakeBatch(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i, a := range asks {
			if forbidden := i >= 10; forbidden != errors.Is(a.Err, tidegate.ErrCannotAsk) || !forbidden && !a.Granted.OK {
				t.Errorf("user %d: %+v, %v", i, a.Granted, a.Err)
			}
		}
		if s.across.shared.Load() == before && s.across.notRun.Load() == 0 {
			t.Error("no batch was sent: the test has lost its point")
		}
	}
}

// A key of another type fails alone, also the first time, for every algorithm.
func TestClusterKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	for _, l := range countingLaws("api", 50) {
		s := openTest(t, clusterOf(nodes))
		awaitBatches(t, s, 3)
		lim, err := s.compile(l)
		if err != nil {
			t.Fatal(err)
		}
		key := lim.name("u7")
		nodes[holder(t, nodes, nodes[0].Do("CLUSTER", "KEYSLOT", key))].Do("HSET", key, "a", "b")
		for n := range int64(2) {
			asks := batchOf(l, maxBatch)
			if err := in(s).TakeBatch(t.Context(), asks); err != nil {
				t.Fatal(err)
			}
			for i, a := range asks {
				if alien := i == 7; alien != errors.Is(a.Err, tidegate.ErrCannotAsk) || !alien && (a.Err != nil || a.Granted.Remaining != 49-n) {
					t.Errorf("%s: user %d: %+v, %v", l, i, a.Granted, a.Err)
				}
			}
		}
		if s.across.shared.Load() == 0 {
			t.Errorf("%s: no batch was sent: the test has lost its point", l)
		}
	}
}

// A master that is out of memory refuses a script that may write before it runs. Asks that
// write nothing have their answers all the same.
func TestClusterOutOfMemory(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	s := openTest(t, clusterOf(nodes))
	awaitBatches(t, s, 3)
	l := bucket("api", "user", 3, 24*time.Hour)
	takeBatches(t, s, l, 3)
	for _, n := range nodes {
		n.Do("CONFIG", "SET", "maxmemory", "1")
	}
	asks := batchOf(l, maxBatch)
	if err := in(s).TakeBatch(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	for i, a := range asks {
		if a.Err != nil || a.Granted.OK || a.Granted.RetryAfter <= 0 {
			t.Errorf("user %d, who has used all: %+v, %v", i, a.Granted, a.Err)
		}
	}
	asks = batchOf(bucket("other", "user", 3, 24*time.Hour), maxBatch)
	if err := in(s).TakeBatch(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	for i, a := range asks {
		if a.Err == nil || !strings.Contains(a.Err.Error(), "raise maxmemory") {
			t.Errorf("user %d: %+v, %v", i, a.Granted, a.Err)
		}
	}
}

// The masters have numbers, which they keep, and a master that takes over has another one.
func TestServers(t *testing.T) {
	t.Parallel()
	alone := openTest(t, Config{Addrs: []string{testdep.Redis(t).Addr}})
	l := bucket("api", "user", 3, time.Hour)
	if n := in(alone).Server(l, "ann"); n != 0 || len(in(alone).Servers()) != 1 {
		t.Errorf("one server: %d of %q", n, in(alone).Servers())
	}
	nodes := testdep.RedisCluster(t, 3, 0)
	s := openTest(t, clusterOf(nodes))
	awaitBatches(t, s, 3)
	if got := len(in(s).Servers()); got != 3 {
		t.Fatalf("three masters: %q", in(s).Servers())
	}
	where := func(user string) string { return in(s).Servers()[in(s).Server(l, user)] }
	for i := range 20 {
		user := fmt.Sprint("u", i)
		slot := fmt.Sprint(slotOfKey("{user=" + user + "}"))
		if got, want := where(user), nodes[holder(t, nodes, slot)].Addr; got != want {
			t.Errorf("%s is at %s, Redis says %s", user, got, want)
		}
	}
	before := in(s).Server(l, "u1")
	slot := fmt.Sprint(slotOfKey("{user=u1}"))
	from := holder(t, nodes, slot)
	mustTake(t, s, 1, tidegate.Check{Key: "u1", Limit: l, Cost: 1})
	move(t, nodes, slot, from, (from+1)%3, func() {})
	testdep.Eventually(t, "the move is known", func() bool {
		_, _ = s.Take(context.Background(), []tidegate.Check{{Key: "u1", Limit: l, Cost: 1}}, 1)
		return where("u1") == nodes[(from+1)%3].Addr
	})
	if after := in(s).Server(l, "u1"); after == before {
		t.Errorf("it has moved from %d to %d", before, after)
	}
	if host, _, err := net.SplitHostPort(where("u1")); err != nil || host != "127.0.0.1" {
		t.Errorf("the server is called %q", where("u1"))
	}
}
