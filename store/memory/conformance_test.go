package memory_test

import (
	"context"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return memory.Open(memory.Config{Now: now})
	})
}

func TestConformanceRealClock(t *testing.T) {
	storetest.RunReal(t, func(t *testing.T) tidegate.Store { return memory.New() }, storetest.Brief())
}

// byOne asks for every single check by TakeOne, as a Limiter of one limit does.
type byOne struct{ *memory.Store }

func (s byOne) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	if len(checks) == 1 && n == 1 && !checks[0].Advisory && checks[0].Floor == 0 {
		c := checks[0]
		return s.TakeOne(ctx, c.Key, c.Limit, c.Cost, c.MaxWait)
	}
	return s.Store.Take(ctx, checks, n)
}

func TestConformanceByOne(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) tidegate.Store {
		return byOne{memory.Open(memory.Config{Now: now})}
	}, storetest.Brief())
}
