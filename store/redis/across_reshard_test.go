package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// moving is a slot on its way from one master to another.
type moving struct {
	slot     string
	from, to *testdep.RedisServer
}

// moveAll moves slots at the same time, key by key, those of one as often as those of
// another.
func moveAll(t *testing.T, nodes []*testdep.RedisServer, all []moving) {
	t.Helper()
	for _, m := range all {
		m.to.Do("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.Do("CLUSTER", "MYID"))
		m.from.Do("CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.to.Do("CLUSTER", "MYID"))
	}
	// A key that is made there meanwhile stays: all that is left here goes.
	for moved := true; moved; {
		moved = false
		for _, m := range all {
			key, _, _ := strings.Cut(m.from.Do("CLUSTER", "GETKEYSINSLOT", m.slot, "1"), "\n")
			if key == "" {
				continue
			}
			host, port, _ := net.SplitHostPort(m.to.Addr)
			m.from.Do("MIGRATE", host, port, key, "0", "5000")
			moved = true
			time.Sleep(2 * time.Millisecond) // while it is half way
		}
	}
	for _, m := range all {
		settle(t, nodes, m)
	}
}

// settle says whose a slot is whose keys have moved. See move.
func settle(t *testing.T, nodes []*testdep.RedisServer, m moving) {
	t.Helper()
	id := m.to.Do("CLUSTER", "MYID")
	for _, n := range append([]*testdep.RedisServer{m.to, m.from}, nodes...) {
		n.Do("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	}
	testdep.Eventually(t, "all nodes agree who has what since when", func() bool {
		for _, n := range nodes[1:] {
			if shares(n) != shares(nodes[0]) {
				return false
			}
		}
		return true
	})
}

// Slots of several masters move to each other, key by key, and back, while batches are
// taken from their keys, of every algorithm. Nothing is charged twice, nothing is forgotten,
// and nobody passes who was not charged.
func TestReshardBatches(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	s := openTest(t, clusterOf(nodes))
	awaitBatches(t, s, 3)
	const users, capacity = 24, 10_000
	var limits []*tidegate.Limit
	for i, a := range []tidegate.Algorithm{tidegate.TokenBucket, tidegate.FixedWindow, tidegate.SlidingWindow, tidegate.SubWindows, tidegate.SlidingLog} {
		limits = append(limits, tidegate.MustLimit(tidegate.Spec{Name: fmt.Sprint("rule", i), Scope: "user", Events: capacity, Period: 100 * 24 * time.Hour, Algorithm: a}))
	}
	var passed [users][5]atomic.Int64
	var failed, asked atomic.Int64
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for worker := range 4 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 3))
			for {
				select {
				case <-stop:
					return
				default:
				}
				law := r.IntN(len(limits))
				asks := make([]chain.Ask, 16)
				who := make([]int, len(asks))
				for i := range asks {
					who[i] = r.IntN(users)
					asks[i] = chain.Ask{Checks: []tidegate.Check{{Key: fmt.Sprint("u", who[i]), Limit: limits[law], Cost: 1}}, Copies: 1 + r.IntN(2)}
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				if err := in(s).TakeBatch(ctx, asks); err != nil {
					t.Errorf("TakeBatch: %v", err)
				}
				cancel()
				asked.Add(1)
				for i := range asks {
					switch err := asks[i].Err; {
					case err == nil:
						passed[who[i]][law].Add(asks[i].Granted.Granted)
					case strings.Contains(err.Error(), "TRYAGAIN"): // the two keys of a log are apart
						failed.Add(1)
					default:
						t.Errorf("Take: %v", err)
					}
				}
			}
		})
	}
	var there, back []moving
	for i := range 6 {
		slot := fmt.Sprint(slotOfKey(fmt.Sprintf("{user=u%d}", i)))
		from := holder(t, nodes, slot)
		m := moving{slot, nodes[from], nodes[(from+1+i%2)%3]}
		there, back = append(there, m), append(back, moving{slot, m.to, m.from})
	}
	for _, all := range [][]moving{there, back, there, back} {
		before := asked.Load()
		testdep.Eventually(t, "they are asked", func() bool { return asked.Load() > before+20 })
		moveAll(t, nodes, all)
	}
	close(stop)
	callers.Wait()
	var sum int64
	for u := range users {
		for law, l := range limits {
			n := passed[u][law].Load()
			sum += n
			if got := left(t, s, tidegate.Check{Key: fmt.Sprint("u", u), Limit: l}); got != capacity-n {
				t.Errorf("user %d, %s: %d have passed, and %d are charged", u, l.Algorithm, n, capacity-got)
			}
		}
	}
	shared, elsewhere, unrun := s.across.shared.Load(), s.across.elsewhere.Load(), s.across.notRun.Load()
	t.Logf("%d passed and %d were told to try again; %d asks in batches, of which %d were elsewhere; %d in batches not taken", sum, failed.Load(), shared, elsewhere, unrun)
	if shared == 0 || elsewhere == 0 || unrun == 0 {
		t.Error("the test has lost its point")
	}
}
