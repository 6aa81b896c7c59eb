package chain

import (
	"sync"
	"time"
)

// Alarms hands out channels that are closed at a given time. Callers that wait for about the
// same time share a channel and its timer: thousands of calls a second, each with the same few
// milliseconds, would otherwise start and stop as many timers. The zero value is ready to use.
type Alarms struct {
	mu    sync.Mutex
	began time.Time // steps are counted from here by the monotonic clock
	set   map[int64]chan struct{}
}

// alarmStep is the most by which a channel is closed too early.
const alarmStep = 500 * time.Microsecond

// gone is the channel for all times that have passed.
var gone = make(chan struct{})

func init() { close(gone) }

// At returns a channel that is closed at the given time, or up to alarmStep earlier.
func (a *Alarms) At(at time.Time) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set == nil {
		a.set, a.began = make(map[int64]chan struct{}), time.Now()
	}
	step := int64(at.Sub(a.began) / alarmStep)
	if c := a.set[step]; c != nil {
		return c
	}
	left := time.Until(a.began.Add(time.Duration(step) * alarmStep))
	if left <= 0 {
		return gone
	}
	c := make(chan struct{})
	a.set[step] = c
	time.AfterFunc(left, func() {
		a.mu.Lock()
		delete(a.set, step)
		a.mu.Unlock()
		close(c)
	})
	return c
}
