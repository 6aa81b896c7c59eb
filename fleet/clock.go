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
// do not depend on it. Those of the instance alone do: during an outage, its fixed windows
// and quotas begin by its own clock.
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

// Off reports whether they differ by more than MaxClockOffset for certain.
func (c Clock) Off() bool { return chain.Clock(c).Beyond() > MaxClockOffset }

// String tells the difference, as in "1.5s ahead of Redis".
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

// roundClock leaves the digits that somebody might read.
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

// clockMemory is how long the best comparison counts.
const clockMemory = 15 * time.Second

// clockWatch is what heartbeats have shown about the clock of this process.
type clockWatch struct {
	skew time.Duration // that tests give it
	tell func(Clock)   // may be nil

	mu  sync.Mutex
	is  Clock     // under mu: the best comparison of late
	at  time.Time // under mu: of it
	off bool      // under mu: it was told that the clocks differ
}

// compared is told of each comparison. A heartbeat that took long says little: the one that
// was answered fastest counts, as long as no later one contradicts it.
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

func (w *clockWatch) now() (is Clock, off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.is, w.off
}

// warning is what an operator should know of a clock that differs.
func (c Clock) warning() string {
	return fmt.Sprintf("the clock of this machine is %s: windows and quotas that are counted here while Redis is away begin at other times than elsewhere; synchronize the clocks (NTP)", c)
}
