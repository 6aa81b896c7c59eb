package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/store/memory"
)

func TestWaitedIsNoted(t *testing.T) {
	f := func(check tidegate.Check, want ...time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := New(chain.Adapt(memory.New()))
			for i, want := range want {
				waited := time.Duration(0)
				ctx := context.WithValue(t.Context(), Waited{}, &waited)
				d, err := s.Take(ctx, []tidegate.Check{check}, 1)
				if err != nil || d.Queued != (want > 0) {
					t.Fatalf("%+v, %v, want Queued %v", d, err, want > 0)
				}
				if waited != want {
					t.Errorf("number %d of %s waited %s, want %s", i+1, check.Limit.Name, waited, want)
				}
			}
		})
	}
	f(tidegate.Check{Key: "k", Limit: leaky, Cost: 1, MaxWait: time.Minute}, 0, 100*ms, 100*ms)
	f(tidegate.Check{Key: "k", Limit: logged, Cost: 1}, 0, 0, time.Second)
}
