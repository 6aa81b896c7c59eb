package fleet_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// One master of a cluster, or one shard, is gone, and that is nobody else's trouble: callers of
// the others are decided by Redis, alone and together with a limit of the one that is gone;
// instances go on being counted, and every one of them says which server it is, once.
func TestOneMasterIsGone(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, which := range []string{"master killed", "master stopped", "shard killed", "shard stopped"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			kind, how, _ := strings.Cut(which, " ")
			testdep.Undisturbed(t, mastersDeadline/2, func(t testing.TB) {
				m := &masters{TB: t}
				open := m.openCluster
				if kind == "shard" {
					open = m.openShards
				}
				dead, name := open()
				m.find(dead)
				if how == "killed" {
					dead.Kill()
				} else {
					dead.Pause()
				}
				testdep.Eventually(t, "everybody says which server is gone", func() bool {
					m.ask(0, m.gone[0], false)
					m.ask(1, m.gone[0], false) // the last of the nodes has no traffic and finds out by heartbeats
					for _, s := range m.nodes {
						h := s.Health()
						if h.Status != fleet.Partial || len(h.Servers) != 3 || !strings.HasPrefix(fmt.Sprint(h.Why), name+": ") {
							return false
						}
					}
					return true
				})
				for i := range 40 { // which opens the circuits of those that have traffic
					m.ask(i%2, m.gone[0], false)
				}
				for i := range 200 {
					if d := m.ask(i%2, m.well[i%len(m.well)], false); !d.OK || d.Receipt.Origin != tidegate.OriginStore {
						t.Errorf("%+v is not decided by its server, which answers", d)
					}
					if d := m.ask(i%2, m.well[i%len(m.well)], true); !d.OK || d.Receipt.Origin != tidegate.OriginStore {
						t.Errorf("%+v: its part of the server that answers is not decided there", d)
					}
					if d := m.ask(i%2, m.gone[i%len(m.gone)], false); !d.OK || d.Receipt.Origin != tidegate.OriginLocal {
						t.Errorf("%+v: the server that is gone has decided", d)
					}
				}
				for i, s := range m.nodes {
					if n := s.Instances(); n != len(m.nodes) {
						t.Errorf("node %d counts %d instances", i, n)
					}
				}
				if how == "killed" {
					dead.Start()
				} else {
					dead.Resume()
				}
				testdep.Eventually(t, "all is well again", func() bool {
					for _, s := range m.nodes {
						if s.Health().Status != fleet.OK || s.Stats().Backlog > 0 {
							return false
						}
					}
					return true
				})
				m.mu.Lock()
				defer m.mu.Unlock()
				for i, told := range m.told {
					if n := strings.Count(strings.Join(told, " "), fleet.Partial); n > 2 || told[len(told)-1] != fleet.OK {
						t.Errorf("node %d has told %q", i, told)
					}
				}
			})
		})
	}
}

// mastersDeadline is short, as it is waited for whenever the server is asked that is gone.
const mastersDeadline = 250 * time.Millisecond

type masters struct {
	testing.TB
	nodes      []*fleet.Store
	user       *tidegate.Limit
	well, gone []string // users whose counters live on others, and on the server that goes

	mu   sync.Mutex
	told [][]string
}

// openCluster opens instances that share a cluster, and returns the master that had the only
// list before there were several.
func (m *masters) openCluster() (dead *testdep.RedisServer, name string) {
	servers := testdep.RedisCluster(m.TB, 3, 0, "--cluster-require-full-coverage", "no")
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr)
	}
	m.open("redis-cluster://"+strings.Join(addrs, ","), nil)
	for _, s := range servers {
		if s.Do("CLUSTER", "COUNTKEYSINSLOT", s.Do("CLUSTER", "KEYSLOT", "tg:nodes")) != "0" {
			dead = s
		}
	}
	return dead, dead.Addr
}

// openShards opens instances that share shards, and returns one of these.
func (m *masters) openShards() (dead *testdep.RedisServer, name string) {
	servers, shards := newShards(m.TB, "a", "b", "c")
	m.open("", shards)
	return servers[1], shards[1].Name
}

func (m *masters) open(url string, shards []fleet.Shard) {
	m.user = tidegate.MustLimit(tidegate.Spec{Name: "each", Scope: "user", Events: 1_000_000, Period: time.Hour, Algorithm: tidegate.FixedWindow})
	m.told = make([][]string, 3)
	for i := range m.told {
		m.nodes = append(m.nodes, open(m.TB, url, fleet.Options{Shards: shards, Deadline: mastersDeadline, OnState: func(h fleet.Health) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.told[i] = append(m.told[i], h.Status)
		}}))
	}
	for i, s := range m.nodes {
		testdep.Eventually(m.TB, fmt.Sprint("instances of ", i), func() bool { return s.Instances() == len(m.nodes) && len(s.Health().Servers) == 3 })
	}
}

// find finds users of the server that is to go, and users of others.
func (m *masters) find(dead *testdep.RedisServer) {
	for i := 0; len(m.well) < 20 || len(m.gone) < 10; i++ {
		key := fmt.Sprint("u", i)
		if _, err := m.nodes[0].Take(m.Context(), []tidegate.Check{{Key: key, Limit: m.user, Cost: 1}}, 1); err != nil {
			m.Fatal(err)
		}
		if dead.Do("KEYS", "*{user="+key+"}") != "" {
			m.gone = append(m.gone, key)
		} else {
			m.well = append(m.well, key)
		}
	}
}

// ask asks a node about a user, mixed with one whose server goes.
func (m *masters) ask(node int, user string, mixed bool) tidegate.Decision {
	checks := []tidegate.Check{{Key: user, Limit: m.user, Cost: 1}}
	if mixed {
		checks = append(checks, tidegate.Check{Key: m.gone[0], Limit: m.user, Cost: 1})
	}
	d, err := m.nodes[node].Take(m.Context(), checks, 1)
	if err != nil {
		m.Fatal(err)
	}
	return d
}
