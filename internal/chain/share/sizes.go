// Package share has what the layers have in common that count the share of a limit in a store
// of their own. Start with [Sizes].
package share

import (
	"math/bits"
	"sync"

	"tidegate.dev/tidegate"
)

// MaxInstances bounds the number of instances, so that a cost times it is a number.
const MaxInstances = 1 << 16

// For returns a capacity that has room for so many events. There are few different ones; a
// check that is to have less room has a floor.
func For(events int64) int64 { return 1 << bits.Len64(uint64(events-1)) }

// Sizes are limits with another capacity than they were written with. They have the
// same identity, and so the same counters; a pace has a counter of its own. The zero value is
// ready to use.
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

// Get returns l with a capacity, or l itself when there can be no such limit.
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

// Pace returns a bucket of the rate of l with a capacity; nil when there can be no such limit.
func (s *Sizes) Pace(l *tidegate.Limit, capacity int64) *tidegate.Limit {
	return s.made(sized{l, capacity, true}, tidegate.Spec{
		Name: "pace of " + l.Identity(), Algorithm: tidegate.TokenBucket,
		Events: l.Events, Period: l.Period, Burst: capacity,
	}, nil)
}

// made is the limit of a spec, or another one if that is none.
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
