package redis

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A server says what it uses, and every master of a cluster says it for itself.
func TestInfo(t *testing.T) {
	t.Parallel()
	single := testdep.Redis(t, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction", "--maxclients", "321")
	single.Do("SELECT", "0")
	single.Do("MSET", "a", "1", "b", "2", "c", "3")
	nodes := testdep.RedisCluster(t, 3, 0)
	f := func(url string, want ...string) []Info {
		t.Helper()
		s, err := Open(Config{URL: url, Deadline: patient})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var all []Info
		testdep.Await(30*time.Second, func() bool {
			all, _ = s.Info(t.Context()) // of a cluster, the masters have to be found first
			return len(all) >= len(want)
		})
		if len(all) != len(want) {
			t.Fatalf("%d servers told, of %d", len(all), len(want))
		}
		for _, is := range all {
			found := false
			for _, name := range want {
				found = found || is.Server == name
			}
			if !found || is.Used <= 0 || is.CPU <= 0 || is.Clients < 1 || is.MaxClients < 1 {
				t.Errorf("%+v, want one of %q with numbers above 0", is, want)
			}
		}
		return all
	}
	is := f("redis://"+single.Addr, "Redis")[0]
	if is.Max != 64<<20 || is.Policy != "noeviction" || is.MaxClients != 321 || is.Keys != 3 || is.Evicted != 0 {
		t.Errorf("%+v", is)
	}
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	f("redis-cluster://"+strings.Join(addrs, ","), addrs...)
}

// What servers of other versions and makes say is read as far as it is known, and what makes no
// sense is 0.
func TestReadInfo(t *testing.T) {
	f := func(text string, want Info) {
		t.Helper()
		if got := readInfo(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
	f("", Info{})
	f("# Memory\r\nused_memory:1024\r\nmaxmemory:2048\r\nmaxmemory_policy:allkeys-lru\r\n", Info{Memory: Memory{Policy: "allkeys-lru", Max: 2048}, Used: 1024})
	f("connected_clients:7\r\nevicted_keys:9\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\n", Info{Memory: Memory{Evicted: 9}, Clients: 7, CPU: 3750 * time.Millisecond})
	f("db0:keys=5,expires=1,avg_ttl=0\r\ndb15:keys=6,expires=0,avg_ttl=0,subexpiry=0\r\ndbsize:keys\r\n", Info{Keys: 11})
	f("used_memory:-5\r\nmaxmemory:99999999999999999999\r\nused_cpu_sys:NaN\r\nused_cpu_user:1e300\r\nconnected_clients\r\ndb0:keys=-1\r\n", Info{Memory: Memory{Max: 1<<63 - 1}})
	f("used_memory_peak:7\nused_memory_human:1K\nmaxclients:10000", Info{MaxClients: 10000})
}
