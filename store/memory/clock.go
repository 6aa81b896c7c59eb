package memory

import (
	"math/bits"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/algo"
)

// clock gives the store's time. It starts at the wall clock's and then follows
// the monotonic one, which also costs half as much to read. What is aligned to
// the wall clock adds skew, the steps the wall clock has made since.
type clock struct {
	start  time.Time
	base   int64 // ticks at start
	custom func() time.Time

	skew   atomic.Int64 // ticks
	synced atomic.Int64 // ticks at which skew was last looked at
}

// skewEvery is how often the wall clock is read, and skewLeast the smallest step that
// counts: the wall clock is always trimmed a little.
const (
	skewEvery = 1_000_000 * algo.Micro
	skewLeast = 1_000 * algo.Micro
)

func newClock(custom func() time.Time) clock {
	if custom != nil {
		return clock{custom: custom}
	}
	start := time.Now()
	return clock{start: start, base: algo.Instant(start)}
}

// now returns the store's time in ticks.
func (c *clock) now() int64 {
	if c.custom != nil {
		return algo.Instant(c.custom())
	}
	return c.after(time.Since(c.start))
}

// after returns the time in ticks when d has passed since start.
func (c *clock) after(d time.Duration) int64 {
	ns := uint64(d)
	more, _ := bits.Mul64(ns, 3<<64/125+1) // ns*3/125: 1024 ticks are 1000 ns
	return c.base + int64(ns+more)
}

// tryNow is now for a caller that owns a slot, which it must release even if a custom
// clock panics. failed is the value of that panic, or nil.
func (c *clock) tryNow() (now int64, failed any) {
	if c.custom != nil {
		defer func() { failed = recover() }()
	}
	return c.now(), nil
}

// wall returns the wall clock, in ticks, at the store's time now.
func (c *clock) wall(now int64) int64 {
	if c.custom != nil {
		return now
	}
	last := c.synced.Load()
	if now-last > skewEvery && c.synced.CompareAndSwap(last, now) {
		c.sync()
	}
	return now + c.skew.Load()
}

// sync looks at the wall clock, so that the next wall knows a step that it has just made.
func (c *clock) sync() {
	if c.custom != nil {
		return
	}
	t := time.Now() // of both clocks: a goroutine may have to wait between two looks
	skew := algo.Instant(t.Round(0)) - c.after(t.Sub(c.start))
	if d := skew - c.skew.Load(); d > skewLeast || d < -skewLeast {
		c.skew.Store(skew)
	}
}
