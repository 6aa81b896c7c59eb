package redis

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

var opened atomic.Int64

// openTest opens a Store that is empty: it has a prefix of its own.
// patient is a deadline that a busy machine does not miss.
const patient = time.Minute

func openTest(t testing.TB, c Config) *Store {
	t.Helper()
	c.Prefix = fmt.Sprint("t", opened.Add(1))
	if c.Deadline == 0 {
		c.Deadline = patient
	}
	c.GoneAfter = patient
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// pretending opens Stores whose Redis believes in the suite's clock, and those on its
// own that the suite wants on the real one.
func pretending(c Config) func(*testing.T, func() time.Time) tidegate.Store {
	return func(t *testing.T, now func() time.Time) tidegate.Store {
		c := c
		if time.Since(now()).Abs() > time.Hour {
			c.pretend = now
		}
		return openTest(t, c)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := testdep.Redis(t)
	storetest.Run(t, pretending(Config{Addrs: []string{server.Socket}}))
}

// clusterOf is the addresses of nodes.
func clusterOf(nodes []*testdep.RedisServer) Config {
	c := Config{Cluster: true}
	for _, n := range nodes {
		c.Addrs = append(c.Addrs, n.Addr)
	}
	return c
}

func TestConformanceCluster(t *testing.T) {
	testdep.SkipUnderRace(t) // TestConformanceClusterBatches is not
	t.Parallel()
	storetest.Run(t, pretending(clusterOf(testdep.RedisCluster(t, 3, 1))), storetest.Brief())
}

// Behind Sentinels there is a Redis like any other. It goes by its own clock here, and
// with TIDEGATE_LONG=1 by the suite's as well.
func TestConformanceSentinel(t *testing.T) {
	testdep.SkipUnderRace(t) // TestConformance is not
	t.Parallel()
	_, sentinels := testdep.RedisSentinel(t, 2)
	c := sentinelsOf(sentinels)
	storetest.RunReal(t, func(t *testing.T) tidegate.Store { return openTest(t, c) }, storetest.Brief())
	if testdep.Long() {
		storetest.Run(t, pretending(c))
	}
}

// sentinelsOf is the addresses of Sentinels.
func sentinelsOf(sentinels []*testdep.RedisServer) Config {
	c := Config{Master: "mymaster"}
	for _, s := range sentinels {
		c.Addrs = append(c.Addrs, s.Addr)
	}
	return c
}

// in is s as package fleet has it.
func in(s *Store) fleetStore { return fleetStore{s} }
