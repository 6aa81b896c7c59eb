package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/storetest"
)

func TestSlotOf(t *testing.T) {
	t.Parallel()
	node := testdep.RedisCluster(t, 1, 0)[0]
	for _, key := range []string{"", "a", "tg:api:{user=42}", "tg:api:{user=42}:log:1m0s", "tg:{}x", "tg:{", "tg:a}{b}", "{a}{b}", "tg:api:{%2F%00}", "123456789"} {
		if got, want := fmt.Sprint(slotOfKey(key)), node.Do("CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("%q lives in the slot %s, Redis says %s", key, got, want)
		}
	}
}

// awaitBatches waits until all masters that s knows can be sent batches.
func awaitBatches(t testing.TB, s *Store, masters int) {
	t.Helper()
	n := 0
	if !testdep.Await(30*time.Second, func() bool {
		s.batchOwner(s.prefix + ":")
		n = 0
		if c := s.topology.current.Load(); c != nil {
			for _, m := range c.masters {
				if m.support.now(time.Now()) == supported {
					n++
				}
			}
		}
		return n == masters
	}) {
		t.Fatalf("%d of %d masters take batches", n, masters)
	}
}

// among is a Store that asks about every single check among others of other keys, most of
// them of other slots.
type among struct{ *Store }

func (s among) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if len(checks) != 1 || checks[0].Limit.Algorithm == tidegate.Concurrency {
		return s.Store.Take(ctx, checks, n)
	}
	asks := []chain.Ask{{Checks: checks, Copies: n}}
	for i := range testdep.Longer(4, 12) {
		peek := checks[0]
		peek.Key, peek.Cost, peek.Advisory = fmt.Sprint("peek", i), 0, false
		at := rand.IntN(len(asks) + 1)
		asks = append(asks[:at], append([]chain.Ask{{Checks: []tidegate.Check{peek}, Copies: 1}}, asks[at:]...)...)
	}
	if err := in(s.Store).TakeBatch(ctx, asks); err != nil {
		return tidegate.Decision{}, err
	}
	for _, a := range asks {
		if a.Checks[0].Key == checks[0].Key && &a.Checks[0] == &checks[0] {
			return a.Granted, a.Err
		}
	}
	panic("the ask is lost")
}

// The suite holds where checks share scripts with others of other slots.
func TestConformanceClusterBatches(t *testing.T) {
	t.Parallel()
	nodes := testdep.RedisCluster(t, 3, 0)
	open := pretending(clusterOf(nodes))
	var all []*Store
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		s := open(t, now).(*Store)
		awaitBatches(t, s, 3)
		all = append(all, s)
		return among{s}
	}, storetest.Brief())
	var batched uint64
	for _, s := range all {
		batched += s.across.shared.Load()
	}
	t.Logf("%d asks went in batches", batched)
	if batched < 1000 {
		t.Errorf("%d asks went in batches", batched)
	}
}
