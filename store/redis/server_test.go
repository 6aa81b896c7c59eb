package redis

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

var one100 = tidegate.Check{Key: "ann", Cost: 1, Limit: bucket("api", "user", 100, 24*time.Hour)}

// wantError wants Take to fail with an error that says something.
func wantError(t *testing.T, s *Store, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d, err := s.Take(ctx, []tidegate.Check{one100}, 1)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Take = %+v, %v; want an error with %q", d, err, want)
	}
}

// A user of the server may do no more than it has to.
func TestACLUser(t *testing.T) {
	server := testdep.Redis(t)
	server.Do("ACL", "SETUSER", "tidegate", "on", ">secret", "~tg:*",
		"+evalsha", "+eval", "+time", "+get", "+setex", "+setrange", "+del", "+exists", "+scan", "+role",
		"+llen", "+lindex", "+lrange", "+rpush", "+ltrim", "+lrem", "+expire",
		"+zrange", "+zrangebyscore", "+zadd", "+zcount", "+zscore", "+zrem", "+zremrangebyscore",
		"+hello", "+ping")
	server.Do("ACL", "SETUSER", "default", "off")
	open := func(user string) *Store {
		s, err := Open(Config{URL: "redis://" + user + server.Addr, Deadline: patient})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open("tidegate:secret@")
	ctx := context.Background()
	for _, l := range []*tidegate.Limit{
		one100.Limit, tidegate.Slots(5, time.Minute),
		tidegate.MustLimit(tidegate.Spec{Name: "log", Events: 5, Period: time.Minute, Algorithm: tidegate.SlidingLog}),
	} {
		c := tidegate.Check{Key: "ann", Limit: l, Cost: 1, Estimate: true}
		d := mustTake(t, s, 1, c)
		if err := s.Renew(ctx, d.Receipt, []tidegate.Check{c}); err != nil {
			t.Error(err)
		}
		c.Cost = -1
		if err := s.Adjust(ctx, d.Receipt, []tidegate.Check{c}); err != nil {
			t.Error(err)
		}
		c.Cost = 1
		d, err := s.Reserve(ctx, []tidegate.Check{c}, time.Minute)
		if err != nil {
			t.Error(err)
		}
		if err := s.Settle(ctx, d.Receipt, 0); err != nil {
			t.Error(err)
		}
		if err := s.Reset(ctx, []tidegate.Check{c}); err != nil {
			t.Error(err)
		}
	}
	for _, err := range s.Keys(ctx, "") {
		if err != nil {
			t.Error(err)
		}
	}
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
	wantError(t, open("tidegate:wrong@"), "the user name or the password is wrong")
	wantError(t, open(""), "give a password")
}

// keyPair writes a certificate for 127.0.0.1 and its key, and returns their files.
func keyPair(t *testing.T) (cert, key string) {
	t.Helper()
	return testdep.NewCertificate(t, "redis", nil).Files(t, t.TempDir())
}

func TestTLS(t *testing.T) {
	cert, key := keyPair(t)
	port := testdep.FreePort(t)
	testdep.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	url := "rediss://127.0.0.1:" + port
	mustTake(t, openTest(t, Config{URL: url + "?ca=" + cert + "&cert=" + cert + "&key=" + key}), 1, one100)
	wantError(t, openTest(t, Config{URL: url}), "certificate")
	wantError(t, openTest(t, Config{URL: url + "?ca=" + cert}), "redis: take: ") // it wants one of ours, too
}

// Redis may be down when a Store is opened, and whenever it likes. The Store is there
// again when it is.
func TestServerComesAndGoes(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	server.Kill()
	early := openTest(t, Config{URL: "redis://" + server.Addr})
	for _, s := range []*Store{s, early} {
		wantError(t, s, "connection refused")
		if err := s.Ping(context.Background()); err == nil {
			t.Error("Ping of a server that is down says that it is there")
		}
	}
	server.Start()
	for _, s := range []*Store{s, early} {
		mustTake(t, s, 1, one100)
	}
	server.Kill()
	wantError(t, s, "redis: take: ")
	server.Start()
	mustTake(t, s, 1, one100)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	wantError(t, s, "")
}

// What an operator has to hear is what to do.
func TestFailures(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	mustTake(t, s, 1, one100)

	server.Do("CONFIG", "SET", "maxmemory", "1")
	wantError(t, s, "raise maxmemory")
	server.Do("CONFIG", "SET", "maxmemory", "0")

	host, port, _ := net.SplitHostPort(server.Addr)
	server.Do("CONFIG", "SET", "replica-serve-stale-data", "yes")
	server.Do("REPLICAOF", host, port) // of itself: a replica without a master
	wantError(t, s, "the server is a replica")
	server.Do("REPLICAOF", "NO", "ONE")

	key := s.prefix + ":api:{user=ann}"
	server.Do("DEL", key)
	server.Do("LPUSH", key, "x")
	wantError(t, s, "use another prefix")
	if err := s.Reset(context.Background(), []tidegate.Check{one100}); err == nil {
		t.Error("Reset of what somebody else keeps there: no error")
	}
	server.Do("DEL", key)

	if d := mustTake(t, s, 1, one100); d.Remaining != 99 {
		t.Errorf("%d left of 100: what failed was charged", d.Remaining)
	}
}

// A single address of a cluster is a mistake that is easy to make.
func TestNodeOfACluster(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	for _, n := range nodes {
		s := openTest(t, Config{URL: "redis://" + n.Addr})
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
			c := one100
			c.Key = key
			if _, err := s.Take(context.Background(), []tidegate.Check{c}, 1); err != nil && !strings.Contains(err.Error(), "use redis-cluster://") {
				t.Errorf("%v, want to be told to use redis-cluster://", err)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	mustTake(t, s, 1, tidegate.Check{Key: "42", Cost: 1, Limit: bucket("api", "user", 10, time.Hour)})
	mustTake(t, s, 1, tidegate.Check{Key: "43", Cost: 1, Limit: bucket("api", "user", 10, time.Hour)})
	mustTake(t, s, 1, tidegate.Check{Key: "42", Cost: 1, Limit: tidegate.MustLimit(tidegate.Spec{Name: "log in", Scope: "user", Events: 5, Period: time.Hour, Algorithm: tidegate.SlidingLog})})
	if _, err := s.Reserve(context.Background(), []tidegate.Check{one100}, time.Hour); err != nil {
		t.Fatal(err)
	}
	server.Do("SET", "other:api:{user=42}", "x")
	f := func(rule string, want ...string) {
		t.Helper()
		got := map[string]bool{}
		for k, err := range s.Keys(context.Background(), rule) {
			if err != nil {
				t.Fatal(err)
			}
			got[k.Rule+" "+k.Subject+" "+k.Kind+" "+k.Period] = true
		}
		if len(got) != len(want) {
			t.Errorf("rule %q: %v, want %q", rule, got, want)
		}
		for _, w := range want {
			if !got[w] {
				t.Errorf("rule %q: %v, want %q", rule, got, want)
			}
		}
	}
	f("api", "api user=42  ", "api user=43  ", "api user=ann  ")
	f("log in", "log in user=42 log 1h0m0s")
	f("", "api user=42  ", "api user=43  ", "api user=ann  ", "log in user=42 log 1h0m0s")
	f("none")
	for range s.Keys(context.Background(), "") {
		break // whoever has seen enough may go
	}
	server.Kill()
	for _, err := range s.Keys(context.Background(), "") {
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("of a server that is down: %v", err)
		}
	}
}

// Advice about a counter that another check decides on is left out, of what is
// settled as well.
func TestAdviceBesideADecision(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	ctx := context.Background()
	enforced, advice := one100, one100
	enforced.Estimate, advice.Estimate, advice.Advisory = true, true, true
	enforced.Cost, advice.Cost = 10, 30
	for i, checks := range [][]tidegate.Check{{advice, enforced}, {enforced, advice}} {
		d, err := s.Reserve(ctx, checks, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(ctx, d.Receipt, 4); err != nil {
			t.Fatal(err)
		}
		c := one100
		c.Cost = 0
		if d := mustTake(t, s, 1, c); d.Remaining != int64(100-4*(i+1)) {
			t.Errorf("%d left of 100 after %d reservations settled at 4", d.Remaining, i+1)
		}
	}
}
