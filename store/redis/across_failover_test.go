package redis

import (
	"context"
	"regexp"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/dev/testdep"
)

// A master dies and its replica takes over: batches find it there, with what was counted.
func TestBatchesFailover(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 1)
	testdep.FailOverSoon(nodes)
	s := openTest(t, clusterOf(nodes))
	awaitBatches(t, s, 3)
	l := bucket("api", "user", 1000, 24*time.Hour)
	takeBatches(t, s, l, 5)
	offset := regexp.MustCompile(`(?:master|slave)_repl_offset:(\d+)`)
	testdep.Eventually(t, "its replica knows all", func() bool {
		master := offset.FindStringSubmatch(nodes[0].Do("INFO", "replication"))
		return master[1] == offset.FindStringSubmatch(nodes[3].Do("INFO", "replication"))[1]
	})
	dead := nodes[0].Addr
	nodes[0].Kill()
	testdep.Eventually(t, "all are answered in batches", func() bool {
		before := s.across.shared.Load()
		asks := batchOf(l, maxBatch)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := in(s).TakeBatch(ctx, asks); err != nil {
			t.Fatal(err)
		}
		for _, a := range asks {
			if a.Err != nil {
				return false
			}
			if a.Granted.Remaining > 994 {
				t.Fatalf("%d left of 1000 after 6", a.Granted.Remaining)
			}
		}
		return s.across.shared.Load() == before+uint64(len(asks))
	})
	for _, name := range in(s).Servers() {
		if name == dead {
			t.Errorf("the dead master is still one of %q", in(s).Servers())
		}
	}
}
