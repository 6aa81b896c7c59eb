package fleet

import (
	"fmt"
	"sync"
	"time"

	"tidegate.dev/tidegate/internal/chain"
)

// MaxClockOffset is how far the clock of an instance may differ from that of Redis before
// there is a warning.
const MaxClockOffset = 100 * time.Millisecond

// Clock is how the wall clock of an instance compares with that of Redis. Decisions of Redis
// do not depend on the clock of an instance. What an instance decides alone does: during an
// outage, its fixed windows and quotas begin by its own clock.
type Clock struct {
	// Server is the master of a Redis Cluster, or the shard, whose clock differs most; "" if
	// there is one server.
	Server string
	// Offset is how far the clock of the instance is ahead; less than 0: behind.
	Offset time.Duration
	// Within is how far Offset may be wrong: half the round trip of a heartbeat. 0 means
	// that the clocks have not been compared.
	Within time.Duration
}

// Known reports whether the clocks have been compared.
func (c Clock) Known() bool { return chain.Clock(c).Known() }

// Off reports whether the clocks certainly differ by more than MaxClockOffset.
func (c Clock) Off() bool { return chain.Clock(c).Beyond() > MaxClockOffset }

// String describes the difference, as in "1.5s ahead of Redis".
func (c Clock) String() string {
	if !c.Known() {
		return "not compared with Redis"
	}
	direction, server := "ahead of", "Redis"
	if c.Offset < 0 {
		direction = "behind"
	}
	if c.Server != "" {
		server += " at " + c.Server
	}
	return fmt.Sprintf("%s %s %s", roundClock(c.Offset.Abs()), direction, server)
}

// roundClock rounds a difference for people to read.
func roundClock(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// clockMemory is how long the best comparison is used.
const clockMemory = 15 * time.Second

// clockWatch is what heartbeats have shown about the clock of this process.
type clockWatch struct {
	skew time.Duration // added to every offset, for tests
	tell func(Clock)   // called when the clocks begin or cease to differ; may be nil

	mu  sync.Mutex
	is  Clock     // under mu: the best of the recent comparisons
	at  time.Time // under mu: when that was made
	off bool      // under mu: tell was last called because the clocks differ
}

// compared is called with each comparison. The heartbeat that was answered fastest is the most
// exact: it is used for clockMemory, unless a later one contradicts it. Once the clocks differ,
// the warning ends only when Offset itself is at most MaxClockOffset, so that it does not come
// and go.
func (w *clockWatch) compared(c chain.Clock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Offset += w.skew
	now := time.Now()
	contradicts := (c.Offset - w.is.Offset).Abs() > c.Within+w.is.Within
	if w.is.Known() && c.Within > w.is.Within && !contradicts && now.Sub(w.at) < clockMemory {
		return
	}
	w.is, w.at = Clock(c), now
	off := w.is.Off() || w.off && w.is.Offset.Abs() > MaxClockOffset
	if off == w.off {
		return
	}
	if w.off = off; w.tell != nil {
		w.tell(w.is)
	}
}

// best returns the comparison in use, and whether the clocks differ.
func (w *clockWatch) best() (is Clock, off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.is, w.off
}

// warning tells an operator what a clock that differs means, and what to do.
func (c Clock) warning() string {
	return fmt.Sprintf("the clock of this machine is %s: windows and quotas that are counted here while Redis is away begin at other times than elsewhere; synchronize the clocks (NTP)", c)
}
