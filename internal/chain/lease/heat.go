package lease

import (
	"sync/atomic"
	"time"
)

// heat finds the keys that are asked for often, in memory of a fixed size. Keys that share a
// place are taken for one: the worst that comes of it is a portion for a key that needed
// none.
type heat struct {
	places [1 << 12]atomic.Uint64 // a period and how many requests it has had
}

// hotFrom is how many requests in a life make a key hot. A portion then saves calls even if
// requests that come together share one.
const hotFrom = 8

// add counts a request and reports whether its key is hot.
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
