package redis

import (
	"math"
	"sync/atomic"
	"time"
)

// clock estimates Redis' time. It is used only to choose which bounds of calendar periods to send;
// Redis picks among them by its own clock.
type clock struct {
	pretend func() time.Time // replaces Redis' clock, in tests
	node    func() time.Time // replaces this process'
	ahead   atomic.Int64     // µs that Redis was ahead when last seen
}

func (c *clock) micros() int64 {
	if c.node != nil {
		return c.node().UnixMicro()
	}
	return time.Now().UnixMicro()
}

// redis returns about what Redis' clock shows now, in µs.
func (c *clock) redis() int64 { return c.micros() + c.ahead.Load() }

// sync notes what Redis' clock showed just now.
func (c *clock) sync(us int64) { c.ahead.Store(us - c.micros()) }

// pretended returns the instant that scripts use in place of Redis' time; 0 means none.
func (c *clock) pretended() float64 {
	if c.pretend == nil {
		return 0
	}
	return math.Max(1, float64(c.pretend().UnixMicro()))
}
