package sim

import (
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
)

// A bucket with events on leases holds back what refills meanwhile, also if the memory in which
// its key was when it was asked about is used for other keys.
func TestLeasesAreRememberedByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(&Scenario{}, time.Now())
		l := bucket("hot", 100, 100)
		take := func(key string, copies int, life time.Duration) int64 {
			memory := []byte(key)
			asks := []chain.Ask{{
				Checks: []tidegate.Check{{Key: unsafe.String(&memory[0], len(memory)), Limit: l, Cost: 1}},
				Copies: copies, Lease: life,
			}}
			s.takeBatch(asks)
			clear(memory)
			return asks[0].Granted.Granted
		}
		take("k1", 10, 100*time.Millisecond)
		take("k1", 10, 0)
		if got := take("k2", 200, 0); got != 100 {
			t.Errorf("%d of a bucket without leases, want 100", got)
		}
		if got := take("k1", 200, 0); got != 70 {
			t.Errorf("%d of a bucket with leases, want 100 less 20 used and 10 held back", got)
		}
	})
}
