// Package share has what layers have in common that count their share of a limit in a store of
// their own. Start with [Sizes].
package share

import (
	"math/bits"
	"sync"

	"tidegate.dev/tidegate"
)

// MaxInstances bounds the number of instances, so that a cost times it does not overflow.
const MaxInstances = 1 << 16

// For returns a capacity with room for so many events: the next power of two, so that there are
// few different ones. A check that is to have less room needs a floor.
func For(events int64) int64 { return 1 << bits.Len64(uint64(events-1)) }

// Sizes makes and keeps variants of limits with another capacity. They have the same identity as
// the original, and so the same counters; a pace has a counter of its own. The zero value is ready
// to use.
type Sizes struct {
	mu  sync.Mutex
	all map[sized]*tidegate.Limit
}

type sized struct {
	limit    *tidegate.Limit
	capacity int64
	pace     bool
}

// maxSizes is how many are kept; they are made again when needed.
const maxSizes = 4096

// Get returns l with another capacity, or l itself if that is not valid.
func (s *Sizes) Get(l *tidegate.Limit, capacity int64) *tidegate.Limit {
	spec := l.Spec
	switch l.Algorithm {
	case tidegate.TokenBucket:
		spec.Burst = capacity
	case tidegate.LeakyBucket:
		spec.Burst = capacity - 1
	default:
		spec.Events = capacity
	}
	return s.made(sized{limit: l, capacity: capacity}, spec, l)
}

// Pace returns a bucket with the rate of l and a capacity; nil if that is not valid.
func (s *Sizes) Pace(l *tidegate.Limit, capacity int64) *tidegate.Limit {
	return s.made(sized{l, capacity, true}, tidegate.Spec{
		Name: "pace of " + l.Identity(), Algorithm: tidegate.TokenBucket,
		Events: l.Events, Period: l.Period, Burst: capacity,
	}, nil)
}

// made returns the limit of a spec, or otherwise if the spec is not valid.
func (s *Sizes) made(key sized, spec tidegate.Spec, otherwise *tidegate.Limit) *tidegate.Limit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.all[key]; ok {
		return found
	}
	made, err := tidegate.NewLimit(spec)
	if err != nil {
		made = otherwise
	}
	if s.all == nil || len(s.all) >= maxSizes {
		s.all = make(map[sized]*tidegate.Limit)
	}
	s.all[key] = made
	return made
}
