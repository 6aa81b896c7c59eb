package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/redis"
)

// So it is with a real Redis.
func TestStallsOfRedisChargeOnce(t *testing.T) {
	server := testdep.Redis(t)
	inner, err := redis.Open(redis.Config{Addrs: []string{server.Socket}, Deadline: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	for seed := range uint64(testdep.Longer(2, 200)) {
		for _, nodes := range []int{1, 3} {
			server.Do("FLUSHALL")
			s := newStalled(t, seed, nodes, &realServer{Backend: chain.Adapt(inner), server: server, doubt: map[string]int64{}})
			s.run(1+11*int(seed%2), 400*time.Millisecond)
			testdep.Await(patient, s.settled)
			s.compare()
		}
	}
}

// settled reports whether every node is well, and owes nothing.
func (s *stalled) settled() bool {
	for _, g := range s.nodes {
		if h := g.Health(); h.State != OK || h.Backlog != 0 || h.InFlight != 0 {
			return false
		}
	}
	return true
}

// realServer is a Redis, and notes which calls had no answer.
type realServer struct {
	chain.Backend
	server *testdep.RedisServer

	mu    sync.Mutex
	doubt map[string]int64
}

func (s *realServer) stop()   { s.server.Pause() }
func (s *realServer) resume() { s.server.Resume() }

func (s *realServer) used(c tidegate.Check) (used, doubt int64) {
	d, err := s.Backend.Take(context.Background(), []tidegate.Check{{Key: c.Key, Limit: c.Limit}}, 1)
	if err != nil {
		panic(fmt.Sprint("Redis has settled: ", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.Limit.Capacity() - d.Remaining, s.doubt[counterName(&c)]
}

func (s *realServer) unanswered(checks []tidegate.Check, copies int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range checks {
		s.doubt[counterName(&checks[i])] += max(checks[i].Cost, -checks[i].Cost) * int64(copies)
	}
}

func (s *realServer) TakeBatch(ctx context.Context, asks []chain.Ask) error {
	err := s.Backend.TakeBatch(ctx, asks)
	for i := range asks {
		if err != nil || asks[i].Err != nil {
			s.unanswered(asks[i].Checks, asks[i].Copies)
		}
	}
	return err
}

func (s *realServer) Adjust(ctx context.Context, r tidegate.Receipt, checks []tidegate.Check) error {
	err := s.Backend.Adjust(ctx, r, checks)
	if err != nil {
		s.unanswered(checks, 1)
	}
	return err
}
