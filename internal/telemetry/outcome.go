package telemetry

import (
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// origins is the number of tidegate.Origins.
const origins = int(tidegate.OriginEventual) + 1

// counters has one for each outcome. It fills whole cache lines of 64 bytes, so that processors that
// count for different rules do not wait for each other.
type counters struct {
	n [(outcome.Count + 7) / 8 * 8]atomic.Uint64
}

func (c *counters) add(o outcome.Outcome) { c.n[o].Add(1) }

func (c *counters) addMany(o outcome.Outcome, n int64) { c.n[o].Add(uint64(n)) }
