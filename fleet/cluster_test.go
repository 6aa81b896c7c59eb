package fleet_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// One master of a cluster stands still. Callers of the others share batches with each other
// and with nobody who waits for it: they are answered by Redis, before those are by the
// deadline.
func TestBatchesOfOtherMastersGoOn(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	s := open(t, "redis-cluster://"+nodes[0].Addr, fleet.Options{Deadline: 10 * time.Second})
	limit := tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: 1000, Period: 8000 * time.Hour, Algorithm: tidegate.TokenBucket}) // none comes back meanwhile
	take := func(user string) tidegate.Decision {
		d, err := s.Take(context.Background(), []tidegate.Check{{Key: user, Limit: limit, Cost: 1}}, 1)
		if err != nil {
			t.Errorf("Take: %v", err)
		}
		return d
	}
	var still, others []string
	for i := range 60 {
		user := fmt.Sprint("u", i)
		slot, err := strconv.Atoi(nodes[0].Do("CLUSTER", "KEYSLOT", "{user="+user+"}"))
		if err != nil {
			t.Fatal(err)
		}
		if slot*3/16384 == 1 {
			still = append(still, user)
		} else {
			others = append(others, user)
		}
	}
	var all sync.WaitGroup
	for _, user := range append(still, others...) { // until it is known who is where
		all.Go(func() {
			for range 50 {
				take(user)
			}
		})
	}
	all.Wait()
	nodes[1].Pause()
	defer nodes[1].Resume()
	var waiting, going sync.WaitGroup
	for _, user := range still {
		waiting.Go(func() {
			if d := take(user); d.Receipt.Origin != tidegate.OriginLocal {
				t.Errorf("%s is answered by %s, from a master that stands still", user, d.Receipt.Origin)
			}
		})
	}
	answered := make(chan struct{})
	go func() {
		waiting.Wait()
		close(answered)
	}()
	before := s.Stats()
	for _, user := range others {
		going.Go(func() {
			for n := range 15 {
				if d := take(user); d.Receipt.Origin != tidegate.OriginStore || d.Remaining != limit.Events-int64(50+n+1) {
					t.Errorf("%s: %+v, want %d left by Redis", user, d, limit.Events-int64(50+n+1))
				}
			}
		})
	}
	going.Wait()
	select {
	case <-answered:
		t.Error("callers of the other masters were answered after those of the one that stands still")
	default:
	}
	if now := s.Stats(); now.Calls-before.Calls >= now.Answered-before.Answered {
		t.Errorf("%d answers took %d calls: there are no batches", now.Answered-before.Answered, now.Calls-before.Calls)
	}
	waiting.Wait()
}
