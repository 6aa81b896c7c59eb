package telemetry

import (
	"sync/atomic"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

// origins is how many there are of who decides.
const origins = int(tidegate.OriginEventual) + 1

// counters are one for each outcome, apart from those of other rules: 64 bytes are
// what two processors fight for.
type counters struct {
	n [(outcome.Count + 7) / 8 * 8]atomic.Uint64
}

func (c *counters) add(o outcome.Outcome) { c.n[o].Add(1) }

func (c *counters) addMany(o outcome.Outcome, n int64) { c.n[o].Add(uint64(n)) }
