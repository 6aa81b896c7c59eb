package redis

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// survives takes 40 of 100, has the master killed that counts them, and wants the rest
// from whoever takes its place, by the same Store.
func survives(t *testing.T, s *Store, replicated func() bool, kill func()) {
	t.Helper()
	c := tidegate.Check{Key: "ann", Cost: 40, Limit: bucket("api", "user", 100, 24*time.Hour)}
	mustTake(t, s, 1, c)
	testdep.Eventually(t, "the replica has got it", replicated)
	kill()
	start := time.Now()
	c.Cost = 1
	var d tidegate.Decision
	var err error
	if !testdep.Await(time.Minute, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		d, err = s.Take(ctx, []tidegate.Check{c}, 1)
		return err == nil
	}) {
		t.Fatalf("not answered for a minute: %v", err)
	}
	t.Logf("answered again after %s", time.Since(start).Round(10*time.Millisecond))
	// Those that were not answered may have been charged.
	if d.Remaining > 59 {
		t.Errorf("%d left of 100 after 41 were taken: the new master has refilled", d.Remaining)
	}
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	servers, sentinels := testdep.RedisSentinel(t, 2)
	testdep.FailOverSoon(sentinels)
	replicated := func() bool { return servers[1].Do("DBSIZE") == "1" && servers[2].Do("DBSIZE") == "1" }
	survives(t, openTest(t, sentinelsOf(sentinels)), replicated, servers[0].Kill)
}

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 1)
	testdep.FailOverSoon(nodes)
	holder := 0
	replicated := func() bool {
		for i := range 3 {
			if nodes[i].Do("DBSIZE") == "1" {
				holder = i
				return nodes[3+i].Do("DBSIZE") == "1"
			}
		}
		return false
	}
	survives(t, openTest(t, clusterOf(nodes)), replicated, func() { nodes[holder].Kill() })
}
