package eventual

import (
	"context"
	"sync/atomic"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// clock is this instance's estimate of the clock of the shared store, by which all instances name
// windows. So it does not matter if the clock of an instance is wrong.
type clock struct {
	start time.Time
	raw   func() time.Time // replaces the clock of this instance, in tests
	ahead atomic.Int64     // ns by which the shared clock is ahead of that of this instance

	// The fields below are only used by exchanges, of which there is one at a time.
	known  bool
	within time.Duration // the most by which ahead may be wrong
	at     time.Time     // when ahead was measured
	asked  time.Time     // when the clocks were last compared
}

// compareEvery is how often clocks are compared, and compareLasts how long the best comparison
// is used.
const (
	compareEvery = 5 * time.Second
	compareLasts = time.Minute
)

// own returns the time by the clock of this instance. It counts from start by the monotonic clock, so
// it does not notice when somebody sets the clock.
func (c *clock) own() time.Time {
	if c.raw != nil {
		return c.raw()
	}
	return c.start.Add(time.Since(c.start)).Round(0)
}

// now returns the estimated time by the clock of the shared store.
func (c *clock) now() time.Time { return c.own().Add(time.Duration(c.ahead.Load())) }

// due reports whether the clocks should be compared.
func (c *clock) due() bool { return !c.known || time.Since(c.asked) >= compareEvery }

// compare compares the clock of this instance with that of t. The comparison with the shortest
// round trip is the most exact: it is kept for compareLasts, unless another contradicts it. The
// first comparison returns by how much the shared clock is ahead, later ones 0.
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
