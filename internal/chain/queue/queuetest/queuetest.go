// Package queuetest lets store/storetest run on a store in which requests wait: the suite
// books turns days ahead, and asks how long the wait is. Start with [Clock] and [Telling].
package queuetest

import (
	"context"
	"sync"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/chain/queue"
)

// Clock is a [queue.Clock] that advances by itself to when the next turn comes, so that nobody
// waits. The zero value is ready to use.
type Clock struct {
	mu  sync.Mutex
	now time.Duration // under mu
}

// Now implements queue.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(0, 0).Add(c.now)
}

// AfterFunc implements queue.Clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) queue.Alarm {
	a := alarm{c, f}
	a.Reset(d)
	return a
}

type alarm struct {
	clock *Clock
	f     func()
}

func (a alarm) Reset(d time.Duration) bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.clock.now += max(d, 0)
	go a.f()
	return false
}

func (a alarm) Stop() bool { return false }

// Store has the methods of a store with a queue.
type Store interface {
	tidegate.Store
	tidegate.Renewer
	tidegate.Reserver
	tidegate.Resetter
}

// Telling wraps a store with a queue: its decisions report the wait in Wait, not in Waited, as
// those of stores without a queue do.
type Telling struct{ Store }

// Take implements tidegate.Store.
func (t Telling) Take(ctx context.Context, checks []tidegate.Check, n int) (tidegate.Decision, error) {
	d, err := t.Store.Take(ctx, checks, n)
	if err == nil && d.OK && d.Queued {
		d.Wait, d.Waited, d.Queued = d.Waited, 0, false
	}
	return d, err
}
