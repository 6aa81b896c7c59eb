package redis

import (
	"math"
	"sync/atomic"
	"time"
)

// clock is what a process knows of Redis' time. It decides nothing: it is where the
// bounds of calendar periods are sent around, and Redis picks among them.
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

// redis is about the µs that Redis' clock shows now.
func (c *clock) redis() int64 { return c.micros() + c.ahead.Load() }

// seen says what Redis' clock showed just now.
func (c *clock) seen(us int64) { c.ahead.Store(us - c.micros()) }

// pretended is the instant that scripts are told in place of Redis' time; 0: none.
func (c *clock) pretended() float64 {
	if c.pretend == nil {
		return 0
	}
	return math.Max(1, float64(c.pretend().UnixMicro()))
}
