package node

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/redis"
	"tidegate.dev/tidegate/store/storetest"
)

// patient has a deadline that a busy machine does not miss.
const patient = time.Minute

// open returns a Node around inner that ends with the test.
func open(t testing.TB, inner tidegate.Store, o Options) *Node {
	s := newNode(inner, o)
	t.Cleanup(func() {
		if h := s.Health(); o.Deadline == patient && (h.State != OK || h.Errors+h.Timeouts+h.Busy != 0 || h.Allowed+h.Closed+h.Admitted+h.Refused != 0) {
			t.Errorf("a store that works was not left to work: %+v", h)
		}
		_ = s.Close()
	})
	return s
}

// Without the memory of refusals, a Store answers what the inner store does, to the letter.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return open(t, memory.Open(memory.Config{Now: now}), Options{Deadline: patient, DenyEntries: -1})
	}, storetest.Brief())
}

// With it, a refusal is told by the limit that refused before, which need not be the one
// of several that takes longest. Whatever else is asked of a store holds.
func TestConformanceDenials(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store { return open(t, memory.New(), Options{Deadline: patient}) }, storetest.Brief())
}

func TestConformanceRedis(t *testing.T) {
	t.Parallel()
	conformReal(t, redis.Config{Addrs: []string{testdep.Redis(t).Socket}})
}

// Copies are granted and given back over several servers, which have clocks of their own.
func TestConformanceRedisCluster(t *testing.T) {
	t.Parallel()
	c := redis.Config{Cluster: true}
	for _, n := range testdep.RedisCluster(t, 3, 0) {
		c.Addrs = append(c.Addrs, n.Addr)
	}
	conformReal(t, c)
}

func TestConformanceRedisShards(t *testing.T) {
	testdep.SkipUnderRace(t) // TestConformanceRedis and TestConformanceRedisCluster are not
	t.Parallel()
	var c redis.Config
	for _, name := range []string{"a", "b", "c"} {
		c.Shards = append(c.Shards, redis.Shard{Name: name, URL: "unix://" + testdep.Redis(t).Socket})
	}
	conformReal(t, c)
}

func conformReal(t *testing.T, c redis.Config) {
	stores := 0
	storetest.RunReal(t, func(t *testing.T) tidegate.Store {
		stores++
		c.Prefix, c.Deadline = fmt.Sprint("t", stores), patient
		inner, err := redis.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = inner.Close() })
		return open(t, inner, Options{Deadline: patient})
	}, storetest.Brief())
}
