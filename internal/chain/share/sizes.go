// Package share has what the layers have in common that count a limit's share in a store of
// their own. Start with [Sizes].
package share

import (
	"math/bits"
	"sync"

	"tidegate.dev/tidegate"
)

// MaxInstances bounds the number of instances, so that a cost times it is a number.
const MaxInstances = 1 << 16

// Sizes are limits with another capacity than they were written with. They have the
// same identity, and so the same counters. The zero value is ready to use.
type Sizes struct {
	mu  sync.Mutex
	all map[sized]*tidegate.Limit
}

type sized struct {
	limit    *tidegate.Limit
	capacity int64
}

// maxSizes is how many are kept; they are made again when needed.
const maxSizes = 4096

// For returns a capacity that has room for so many events. There are few different ones; a
// check that is to have less than that has a floor.
func For(events int64) int64 {
	return min(int64(1)<<bits.Len64(uint64(max(events, 1)-1)), tidegate.MaxCount)
}

// Get returns l with a capacity, or l itself when there can be no such limit.
func (s *Sizes) Get(l *tidegate.Limit, capacity int64) *tidegate.Limit {
	if l.Capacity() == capacity {
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sized{l, capacity}
	if found := s.all[key]; found != nil {
		return found
	}
	spec := l.Spec
	switch l.Algorithm {
	case tidegate.TokenBucket:
		spec.Burst = capacity
	case tidegate.LeakyBucket:
		spec.Burst = capacity - 1
	default:
		spec.Events = capacity
	}
	made, err := tidegate.NewLimit(spec)
	if err != nil {
		made = l
	}
	if s.all == nil || len(s.all) >= maxSizes {
		s.all = make(map[sized]*tidegate.Limit)
	}
	s.all[key] = made
	return made
}
