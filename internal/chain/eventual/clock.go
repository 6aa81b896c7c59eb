package eventual

import (
	"context"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// clock is the one by which all instances name windows: that of the store that they share, as far
// as this instance knows it. So wrong clocks of instances do not matter.
type clock struct {
	start time.Time
	raw   func() time.Time // replaces the clock of this instance, in tests
	ahead atomic.Int64     // ns by which the shared clock is ahead of it

	// What follows is only looked at between exchanges.
	known  bool
	within time.Duration // how far ahead may be wrong
	at     time.Time     // of the comparison that counts
	asked  time.Time     // of the last one
}

// compareEvery is how often clocks are compared, and compareLasts for how long the best comparison
// counts.
const (
	compareEvery = 5 * time.Second
	compareLasts = time.Minute
)

func (c *clock) own() time.Time {
	if c.raw != nil {
		return c.raw()
	}
	return c.start.Add(time.Since(c.start)).Round(0)
}

func (c *clock) now() time.Time { return c.own().Add(time.Duration(c.ahead.Load())) }

// due reports whether the clocks should be compared.
func (c *clock) due() bool { return !c.known || time.Since(c.asked) >= compareEvery }

// compare asks the shared clock. A comparison that took long says little: the best one counts, as
// long as none contradicts it. It returns by how much the shared clock turned out to be ahead if
// this was not known before.
func (c *clock) compare(ctx context.Context, t chain.Tallies) (first time.Duration, err error) {
	sent, began := c.own(), time.Now()
	shared, err := t.Time(ctx)
	if err != nil {
		return 0, err
	}
	c.asked = time.Now()
	half := c.asked.Sub(began) / 2
	ahead := shared.Sub(sent.Add(half))
	was := time.Duration(c.ahead.Load())
	contradicts := (ahead - was).Abs() > half+c.within+time.Microsecond
	if c.known && half > c.within && !contradicts && time.Since(c.at) < compareLasts {
		return 0, nil
	}
	if !c.known {
		first = ahead
	}
	c.ahead.Store(int64(ahead))
	c.known, c.within, c.at = true, half, c.asked
	return first, nil
}
