package chain

import (
	"sync"
	"time"

	"tidegate.dev/tidegate"
)

// Estimates holds, for each reservation that a layer decided by counters of its own, what the
// layer needs to settle it. Times are by a clock of the layer. The zero value is ready to use.
type Estimates[T any] struct {
	mu  sync.Mutex
	all map[tidegate.Handle]kept[T]
}

type kept[T any] struct {
	is      T
	expires time.Duration
}

// maxEstimates is how many are kept. A layer refuses further reservations; a few that come at the
// same time may pass.
const maxEstimates = 1 << 16

// Room reports whether one more can be kept; if there is no room, it first drops what has expired. A
// layer asks before it decides a reservation.
func (e *Estimates[T]) Room(now time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.all) < maxEstimates {
		return true
	}
	for h, one := range e.all {
		if one.expires <= now {
			delete(e.all, h)
		}
	}
	return len(e.all) < maxEstimates
}

// Keep keeps one for Take until it expires. It does not check that there is room.
func (e *Estimates[T]) Keep(h tidegate.Handle, one T, expires time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = make(map[tidegate.Handle]kept[T])
	}
	e.all[h] = kept[T]{one, expires}
}

// Take returns what was kept for h, and forgets it. It reports false if there is nothing, or it
// has expired.
func (e *Estimates[T]) Take(h tidegate.Handle, now time.Duration) (T, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	one, ok := e.all[h]
	delete(e.all, h)
	return one.is, ok && now < one.expires
}
