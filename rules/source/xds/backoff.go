package xds

import (
	"math/rand/v2"
	"time"
)

// pace has the waits of a Watcher.
type pace struct {
	least  time.Duration // between two connections
	most   time.Duration
	steady time.Duration // how long a connection has to last for the backoff to start over
	again  time.Duration // the longest wait before another response in a row is refused
	quiet  time.Duration // between two responses
}

var usual = pace{
	least:  500 * time.Millisecond,
	most:   30 * time.Second,
	steady: 10 * time.Second,
	again:  5 * time.Second,
	quiet:  50 * time.Millisecond,
}

// backoff is a wait that doubles. Every wait is jittered, so that a fleet does not come back
// all at once.
type backoff struct {
	least, most time.Duration
	last        time.Duration
}

func (b *backoff) reset() { b.last = 0 }

// next returns how long to wait, from half of the wait to all of it.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.least), b.most)
	return b.last/2 + rand.N(b.last/2+1)
}
