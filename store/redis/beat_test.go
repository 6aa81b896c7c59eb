package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// mustBeat wants a beat to count so many.
func mustBeat(t testing.TB, s *Store, id string, ttl time.Duration, want int) {
	t.Helper()
	if got, err := beat(context.Background(), s, id, ttl); err != nil || got != want {
		t.Errorf("the beat of %s counts %d, %v; want %d", id, got, err, want)
	}
}

// beat registers a node and returns how many there are.
func beat(ctx context.Context, s *Store, id string, ttl time.Duration) (int, error) {
	r, err := in(s).Beat(ctx, chain.Heartbeat{ID: id, TTL: ttl})
	return r.Live, err
}

func testBeats(t *testing.T, a, b *Store) {
	ctx := context.Background()
	mustBeat(t, a, "ann", time.Minute, 1)
	mustBeat(t, a, "ann", time.Minute, 1)
	mustBeat(t, b, "bob", time.Minute, 2)
	mustBeat(t, a, "ann", time.Minute, 2)
	testRanks(t, a, b)
	for range 2 { // who is gone may say so again
		if err := in(b).Leave(ctx, "bob"); err != nil {
			t.Error(err)
		}
	}
	mustBeat(t, a, "ann", time.Minute, 1)
	if _, err := beat(ctx, a, "", time.Minute); err == nil {
		t.Error("nobody was counted")
	}
	if _, err := beat(ctx, a, "ann", time.Microsecond); err == nil {
		t.Error("a beat was taken that is over before it is counted")
	}
	for k := range a.Keys(ctx, "") {
		t.Errorf("the list of nodes is taken for a counter: %+v", k)
	}
}

// testRanks wants every node to know how many come before it, and whether it is new. Ann and
// Bob are registered.
func testRanks(t *testing.T, a, b *Store) {
	f := func(s *Store, id string, live, rank int, listed bool) {
		t.Helper()
		r, err := in(s).Beat(context.Background(), chain.Heartbeat{ID: id, TTL: time.Minute})
		if err != nil || r.Live != live || r.Rank != rank || r.Listed != listed {
			t.Errorf("the beat of %s: %+v, %v; want rank %d of %d, listed %t", id, r, err, rank, live, listed)
		}
	}
	f(a, "ann", 2, 0, true)
	f(b, "bob", 2, 1, true)
	f(a, "Zoe", 3, 0, false) // by their bytes
	f(a, "Zoe", 3, 0, true)
	f(b, "bob", 3, 2, true)
	f(b, "b", 4, 2, false)
	for _, id := range []string{"Zoe", "b"} {
		if err := in(b).Leave(context.Background(), id); err != nil {
			t.Error(err)
		}
	}
	f(b, "bob", 2, 1, true)
	f(a, "ann", 2, 0, true)
}

func TestBeats(t *testing.T) {
	server := testdep.Redis(t)
	url := "redis://" + server.Addr
	a := openTest(t, Config{URL: url})
	b := openTest(t, Config{URL: url})
	b.prefix = a.prefix
	testBeats(t, a, b)

	// A node that sends nothing expires, and a set without nodes is deleted.
	if _, err := beat(context.Background(), b, "bob", 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	n := 0
	if !testdep.Await(10*time.Second, func() bool {
		var err error
		if n, err = beat(context.Background(), a, "ann", 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		return n == 1
	}) {
		t.Fatalf("%d are counted, one of which is long gone", n)
	}
	testdep.Undisturbed(t, 100*time.Millisecond, func(t testing.TB) {
		mustBeat(t, a, "ann", 20*time.Millisecond, 1)
		if ttl := server.Do("TTL", a.nodeSet()); ttl != "1" && ttl != "2" {
			t.Errorf("the list of nodes lives for %s s", ttl)
		}
	})
}

// Beats of a clock that was ahead do not count for longer than those of now.
func TestBeatsOfAClockAhead(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	server.Do("ZADD", s.nodeSet(), "9999999999999", "ghost")
	mustBeat(t, s, "ann", 50*time.Millisecond, 2)
	if !testdep.Await(10*time.Second, func() bool {
		n, err := beat(context.Background(), s, "ann", 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}) {
		t.Fatal("it is still counted")
	}
}

func TestBeatsInACluster(t *testing.T) {
	t.Parallel()
	c := clusterOf(testdep.RedisCluster(t, 3, 0))
	a, b := openTest(t, c), openTest(t, c)
	b.prefix = a.prefix
	testBeats(t, a, b)
}

func TestBeatsOfAServerThatIsDown(t *testing.T) {
	server := testdep.Redis(t)
	s := openTest(t, Config{URL: "redis://" + server.Addr})
	server.Kill()
	if n, err := beat(context.Background(), s, "ann", time.Minute); err == nil {
		t.Errorf("%d are counted by a server that is down", n)
	}
	if err := in(s).Leave(context.Background(), "ann"); err == nil {
		t.Error("a server that is down was told")
	}
}

// Every master of a cluster has a set of nodes: instances are counted as long as one of them
// answers, and it is told which do not.
func TestNodesOfEveryMaster(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			servers := testdep.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
			a, b := openTest(t, clusterOf(servers)), openTest(t, clusterOf(servers))
			b.prefix = a.prefix
			register := func(s *Store, id string) (int, error) {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				return beat(ctx, s, id, time.Minute)
			}
			for _, s := range []*Store{a, b} {
				testdep.Eventually(t, "it knows all lists", func() bool {
					_, _ = register(s, "x")
					return len(s.nodeSets()) == 3
				})
				if err := (fleetStore{s}).Leave(context.Background(), "x"); err != nil {
					t.Error(err)
				}
			}
			testdep.Eventually(t, "both are counted", func() bool {
				one, err := register(a, "a")
				two, err2 := register(b, "b")
				return one == 2 && two == 2 && err == nil && err2 == nil
			})
			dead := servers[holder(t, servers, servers[0].Do("CLUSTER", "KEYSLOT", a.nodeSet()))]
			if how == "killed" {
				dead.Kill()
			} else {
				dead.Pause()
				defer dead.Resume()
			}
			for range 3 {
				n, err := register(a, "a")
				var missed interface{ Servers() map[string]error }
				if n != 2 || !errors.As(err, &missed) || len(missed.Servers()) != 1 || missed.Servers()[dead.Addr] == nil {
					t.Errorf("%d, %v; want 2, and to be told of %s", n, err, dead.Addr)
				}
			}
		})
	}
}

// Whoever leaves while a server has not answered a heartbeat yet is not listed there afterwards, whether or not it still waits
// for that answer.
func TestLeaveDuringABeat(t *testing.T) {
	t.Parallel()
	for name, givenUp := range map[string]bool{"waiting": false, "given up": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, shards := someShards(t, "slow", "quick")
			beating, left := make(chan bool, 1), make(chan bool)
			slow := newMiddleman(t, servers[0].Addr, func(command []string) string {
				if command[0] == "EVALSHA" && command[1] == beatScript().sha {
					beating <- true
					<-left
				}
				return ""
			})
			quick := newMiddleman(t, servers[1].Addr, func(command []string) string {
				if command[0] == "ZREM" {
					close(left)
				}
				return ""
			})
			for i, m := range []*middleman{slow, quick} {
				shards[i].URL = "redis://" + m.addr
				servers[i].Do("SCRIPT", "LOAD", beatScript().text)
			}
			s := openTest(t, Config{Shards: shards})
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			beaten := make(chan error, 1)
			during, giveUp := context.WithCancel(ctx)
			defer giveUp()
			go func() {
				_, err := beat(during, s, "ann", time.Minute)
				beaten <- err
			}()
			<-beating
			if givenUp {
				giveUp()
			}
			if err := in(s).Leave(ctx, "ann"); err != nil {
				t.Error(err)
			}
			if err := <-beaten; err != nil && !givenUp {
				t.Error(err)
			}
			for i, server := range servers {
				if got := server.Do("ZRANGE", s.nodeSet(), "0", "-1"); got != "" {
					t.Errorf("server %d still lists %s", i, got)
				}
			}
		})
	}
}
