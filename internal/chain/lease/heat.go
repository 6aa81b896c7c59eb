package lease

import (
	"sync/atomic"
	"time"
)

// heat finds hot keys, in memory of a fixed size. Keys that share a place are counted as one: the
// worst that happens is a portion for a key that needed none.
type heat struct {
	places [1 << 12]atomic.Uint64 // upper half: a period of maxLife; lower half: requests in it
}

// hotFrom is how many requests within maxLife make a key hot. A portion then saves calls even
// though requests that come together share a call without it.
const hotFrom = 8

// add counts a request in the current period, and reports whether its key is hot.
func (h *heat) add(hash uint64, now time.Duration) bool {
	place := &h.places[hash>>52]
	period := uint64(now/maxLife) << 32
	was := place.Load()
	if was&^(1<<32-1) != period {
		place.CompareAndSwap(was, period|1)
		return false
	}
	return place.Add(1)&(1<<32-1) >= hotFrom
}
