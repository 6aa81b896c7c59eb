package queue_test

import (
	"sync/atomic"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain"
	"tidegate.dev/tidegate/internal/chain/queue"
	"tidegate.dev/tidegate/internal/chain/queue/queuetest"
	"tidegate.dev/tidegate/store/memory"
	"tidegate.dev/tidegate/store/storetest"
)

// But for the waiting, a Store answers exactly what the inner store does, also when decisions are
// timed, as all are here.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() time.Time) tidegate.Store {
		inner := chain.Adapt(memory.Open(memory.Config{Now: now}))
		next := new(atomic.Bool)
		next.Store(true)
		s := queue.NewBy(inner, new(queuetest.Clock)).Time(next, func(time.Duration) { next.Store(true) })
		return queuetest.Telling{Store: s}
	}, storetest.Brief())
}
