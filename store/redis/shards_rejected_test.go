package redis

import (
	"fmt"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// What a log counts of copies that another limit refuses does not depend on where the limits live.
func TestLogCountsRefusedCopiesOnShards(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c")
	s := openTest(t, Config{Shards: shards})
	log := tidegate.MustLimit(tidegate.Spec{Name: "log", Scope: "user", Events: 20, Period: time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
	for _, scope := range []string{"ip", "everyone"} { // asked before the log, and after it
		other := tidegate.MustLimit(tidegate.Spec{Name: "other", Scope: scope, Events: 2, Period: time.Hour, Algorithm: tidegate.FixedWindow})
		for i := range 10 {
			key := fmt.Sprint(scope, i)
			checks := []tidegate.Check{{Key: key, Limit: log, Cost: 1}, {Key: "of " + key, Limit: other, Cost: 1}}
			if d := mustTake(t, s, 5, checks...); d.Granted != 2 {
				t.Errorf("%+v", d)
			}
			if d := mustTake(t, s, 1, tidegate.Check{Key: key, Limit: log}); d.Remaining != 15 {
				t.Errorf("beside %s: %d counted of 2 granted and 3 refused", other, 20-d.Remaining)
			}
			if d := mustTake(t, s, 5, checks...); d.OK {
				t.Errorf("%+v", d)
			}
			if d := mustTake(t, s, 1, tidegate.Check{Key: key, Limit: log}); d.Remaining != 10 {
				t.Errorf("beside %s: %d counted of 2 granted and 8 refused", other, 20-d.Remaining)
			}
		}
	}
}

// The same of a log in shadow mode, which counts no rejected requests, beside one that decides; and at higher costs.
func TestLogsOnShardsCountAsInMemory(t *testing.T) {
	t.Parallel()
	_, shards := someShards(t, "a", "b", "c")
	s, m := openTest(t, Config{Shards: shards}), memory.New()
	log := tidegate.MustLimit(tidegate.Spec{Name: "log", Scope: "user", Events: 20, Period: time.Hour, Algorithm: tidegate.SlidingLog, CountRejected: true})
	for _, advisory := range []bool{true, false} {
		for _, scope := range []string{"ip", "everyone"} {
			for _, cost := range []int64{1, 2} {
				other := tidegate.MustLimit(tidegate.Spec{Name: "other", Scope: scope, Events: 5, Period: time.Hour, Algorithm: tidegate.FixedWindow})
				for i := range 4 {
					key := fmt.Sprint(scope, i, advisory, cost)
					for _, copies := range []int{5, 2, 1} { // the first are granted in part
						var counted [2]int64
						for j, store := range []tidegate.Store{m, s} {
							ask := func(n int, checks ...tidegate.Check) tidegate.Decision {
								d, err := store.Take(t.Context(), checks, n)
								if err != nil {
									t.Fatal(err)
								}
								return d
							}
							ask(copies, tidegate.Check{Key: key, Limit: log, Cost: cost, Advisory: advisory}, tidegate.Check{Key: "of " + key, Limit: other, Cost: cost})
							counted[j] = 20 - ask(1, tidegate.Check{Key: key, Limit: log}).Remaining
						}
						if counted[0] != counted[1] {
							t.Errorf("shadow %t, cost %d, beside %s, %d copies: memory counts %d, shards %d", advisory, cost, other, copies, counted[0], counted[1])
						}
					}
				}
			}
		}
	}
}
