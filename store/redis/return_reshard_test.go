package redis

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// What a subject has granted in vain is given back also if its slot has begun to move to another
// master: its keys are apart, and Redis runs no script for both of them, until the slot has moved.
func TestReturnWhileASlotMoves(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	s := openTest(t, clusterOf(nodes))
	const capacity = 1000
	checks := func(cost int64) []tidegate.Check { // a key for each, in one slot
		return []tidegate.Check{
			{Key: "ann", Cost: cost, Limit: tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: capacity, Period: 100 * 24 * time.Hour, Algorithm: tidegate.FixedWindow})},
			{Key: "ann", Cost: cost, Limit: tidegate.MustLimit(tidegate.Spec{Name: "api", Scope: "user", Events: capacity, Period: 24 * time.Hour, Algorithm: tidegate.SlidingLog})},
		}
	}
	take := func(cost int64) (tidegate.Decision, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return s.Take(ctx, checks(cost), 1)
	}
	d, err := take(1)
	if err != nil || d.Remaining != capacity-1 {
		t.Fatalf("%+v, %v", d, err)
	}
	var changes []change
	for _, c := range checks(1) {
		lim, err := s.compile(c.Limit)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, change{lim: lim, key: lim.name(c.Key), act: giveBack, n: 1, at: d.Receipt.At})
	}
	slot := nodes[0].Do("CLUSTER", "KEYSLOT", changes[0].key)
	from := holder(t, nodes, slot)
	tried, done := make(chan struct{}), make(chan struct{})
	move(t, nodes, slot, from, (from+1)%len(nodes), func() {
		go func() {
			defer close(done)
			s.returnTo(t.Context(), changes, func() { close(tried) })
		}()
		<-tried
		select {
		case <-done:
			t.Error("given up, or given back by a script for keys of two masters")
		default:
		}
	})
	<-done
	if d, err := take(0); err != nil || d.Remaining != capacity {
		t.Errorf("%+v, %v, want all to be given back", d, err)
	}
}
