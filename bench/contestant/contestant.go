// Package contestant puts Tidegate and the limiters a Go developer would pick
// instead behind one small type, so that a rig measures all of them by the same
// loop. Start with [Rivals], [Tidegate] and [Baseline].
//
// Each contestant is written as a competent user of that library would write
// it, from its README; none is tuned, and none is held back. The tests of this
// package show that each one really limits.
package contestant

import (
	"fmt"
	"time"
)

// Quota is what every key is held to. Libraries that count windows ignore Burst.
type Quota struct {
	Events int64
	Period time.Duration
	Burst  int64
}

// Run asks once for each of keys, in order, and counts how many were admitted.
// The loop is inside, so that no contestant pays for a call through an
// interface that its users would not pay.
type Run func(keys []string) (admitted int)

// Contestant is one way to limit.
type Contestant struct {
	Name string
	// Version of the module it comes from.
	Version string
	// MaxEvents is the largest quota it takes; 0 means any.
	MaxEvents int64
	// Make sets up one limiter. Every call of newRun gives another goroutine's
	// way to the same counters.
	Make func(q Quota) (newRun func() Run)
}

// Fit is q reduced to what c takes.
func (c Contestant) Fit(q Quota) Quota {
	if c.MaxEvents > 0 && q.Events > c.MaxEvents {
		q.Events, q.Burst = c.MaxEvents, c.MaxEvents
	}
	return q
}

// Rivals returns the other libraries, the baseline first.
func Rivals() []Contestant {
	return []Contestant{
		Baseline(), rateXsync(), throttledGCRA(), goLimiter(), ululeLimiter(), jujuBucket(), chiRate(),
	}
}

// shared is newRun for contestants whose Run needs nothing of its own.
func shared(run Run) func() Run { return func() Run { return run } }

// must is for setups that can fail only when this package is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("contestant: %v", err))
	}
	return v
}
