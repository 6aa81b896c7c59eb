// Package sampled picks events to be logged, up to a number per name and second, and counts the others.
// It logs nothing itself.
//
// Start with [New].
package sampled

import (
	"sync"
	"sync/atomic"
	"time"
)

// Sample picks events. Use [New]. Its methods may be called by many goroutines at once.
type Sample struct {
	per   uint64
	names sync.Map // string → *state
	count atomic.Int64
	other state // of all names beyond maxNames
}

// state counts the events of a name.
type state struct {
	now  atomic.Uint64 // the second, and how many were picked in it, in the lower 16 bits
	left atomic.Int64  // how many were not picked since one was
}

const (
	// MaxPer is the largest number per second.
	MaxPer = 1<<16 - 1
	// maxNames bounds the memory, in case names are not those of rules.
	maxNames = 4096
)

// New returns a Sample of per events a second for each name, at most [MaxPer].
func New(per int) *Sample { return &Sample{per: uint64(min(max(per, 0), MaxPer))} }

// Pick reports whether to log an event of a name. If so, left is how many were not logged since the last
// one that was.
func (s *Sample) Pick(name string, now time.Time) (ok bool, left int64) {
	st := s.of(name)
	second := uint64(now.Unix()) << 16
	for {
		is := st.now.Load()
		next := second + 1
		if is&^MaxPer == second {
			if is&MaxPer >= s.per {
				st.left.Add(1)
				return false, 0
			}
			next = is + 1
		} else if s.per == 0 {
			st.left.Add(1)
			return false, 0
		}
		if st.now.CompareAndSwap(is, next) {
			return true, st.left.Swap(0)
		}
	}
}

func (s *Sample) of(name string) *state {
	if st, ok := s.names.Load(name); ok {
		return st.(*state)
	}
	if s.count.Add(1) > maxNames {
		return &s.other
	}
	st, had := s.names.LoadOrStore(name, new(state))
	if had {
		s.count.Add(-1)
	}
	return st.(*state)
}
