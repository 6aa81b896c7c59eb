package storetest

import (
	"sync"
	"time"
)

// step is the finest difference in time that the suite asks a store to see.
const step = time.Microsecond

// clock is the time a store under test is given: it stands until moved.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

// newClock starts at one o'clock on a Monday: the start of a minute, an hour
// and, together with the limits used here, never of a day.
func newClock() *clock {
	return &clock{t: time.Date(2026, time.January, 5, 1, 0, 0, 0, time.UTC)}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

func (c *clock) add(d time.Duration) { c.set(c.now().Add(d)) }
