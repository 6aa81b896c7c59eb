package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A server that evicts counters is told of, as soon as it could and when it does; one that
// does not, or whose user may not ask, is not.
func TestEvictionsAreNoticed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []fleet.Eviction
	o := fleet.Options{Deadline: patient, OnEviction: func(e fleet.Eviction) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, e)
	}}
	count := func(f func(fleet.Eviction) bool) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range told {
			if f(e) {
				n++
			}
		}
		return n
	}
	may := func(e fleet.Eviction) bool { return e.Evicted == 0 && e.Policy == "allkeys-lru" }
	did := func(e fleet.Eviction) bool { return e.Evicted > 0 }

	full := testdep.Redis(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
	s := open(t, "redis://"+full.Addr, o)
	testdep.Eventually(t, "the policy is told of", func() bool { return count(may) == 1 })
	if w := s.Health().Warnings; len(w) != 1 || !strings.Contains(w[0], "noeviction instead of allkeys-lru") || s.Health().Status != fleet.OK {
		t.Errorf("health is %+v", s.Health())
	}
	testdep.Eventually(t, "the server tells what it uses", func() bool {
		is := s.Servers()
		return len(is) == 1 && is[0].Used > 0 && is[0].CPU > 0 && is[0].Clients > 0 && is[0].Max == 3<<20
	})
	if count(did) != 0 || s.Evicted() != 0 {
		t.Errorf("%d keys were evicted of none", s.Evicted())
	}
	lim := tidegate.New(s, tidegate.PerHour(10))
	for i := range 20_000 {
		lim.Allow(t.Context(), fmt.Sprint("user", i))
		if i%1000 == 0 && !strings.Contains(full.Do("INFO", "stats"), "evicted_keys:0\r") {
			break
		}
	}
	testdep.Eventually(t, "evictions are counted", func() bool { return s.Evicted() > 0 && count(did) > 0 })
	full.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	testdep.Eventually(t, "all is well", func() bool { return len(s.Health().Warnings) == 0 })
	if n := count(may); n != 1 {
		t.Errorf("the policy was told of %d times", n)
	}
	before := s.Evicted()
	full.Kill()
	full.Start() // which counts from 0 again, with its policy of the start
	testdep.Eventually(t, "it is told of again", func() bool { return count(may) == 2 })
	if got := s.Evicted(); got != before {
		t.Errorf("%d keys were evicted, and %d before Redis was started anew", got, before)
	}

	mu.Lock()
	told = nil
	mu.Unlock()
	safe := testdep.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
	endless := testdep.Redis(t, "--maxmemory-policy", "allkeys-lru")
	secret := testdep.Redis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	secret.Do("ACL", "SETUSER", "default", "-info")
	for _, server := range []*testdep.RedisServer{safe, endless, secret} {
		s := open(t, "redis://"+server.Addr, o)
		if _, err := s.Take(context.Background(), []tidegate.Check{{Key: "ann", Cost: 1, Limit: tidegate.PerHour(10)}}, 1); err != nil {
			t.Error(err)
		}
		defer func() {
			if h := s.Health(); h.Status != fleet.OK || len(h.Warnings) > 0 {
				t.Errorf("health is %+v", h)
			}
			if server == secret && len(s.Servers()) > 0 {
				t.Errorf("a server that may not be asked says %+v", s.Servers())
			}
		}()
	}
	// Of a cluster, every master is asked.
	nodes := testdep.RedisCluster(t, 3, 0)
	nodes[1].Do("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	c := open(t, "redis-cluster://"+nodes[0].Addr, o)
	testdep.Eventually(t, "all masters tell what they use", func() bool { return len(c.Servers()) == 3 })
	testdep.Eventually(t, "one master is told of", func() bool { return count(may) == 1 })
	if count(func(e fleet.Eviction) bool { return e.Server == nodes[1].Addr }) != 1 {
		t.Errorf("told of %+v, want %s", told, nodes[1].Addr)
	}
}
