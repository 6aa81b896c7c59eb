package rules

import (
	"sync/atomic"

	"tidegate.dev/tidegate"
)

var (
	_ tidegate.Matcher = (*Set)(nil)
	_ tidegate.Matcher = (*Live)(nil)
)

// Live is the Set in force, which can be exchanged while requests are decided.
// Use [NewLive].
type Live struct{ set atomic.Pointer[Set] }

// NewLive returns a Live with set in force.
func NewLive(set *Set) *Live {
	l := new(Live)
	l.set.Store(set)
	return l
}

// Set returns the Set in force.
func (l *Live) Set() *Set { return l.set.Load() }

// Swap puts set in force and returns the one that was. A request sees one or the
// other whole. Counters belong to the rules' names and stay.
func (l *Live) Swap(set *Set) *Set { return l.set.Swap(set) }

// Match implements [tidegate.Matcher].
func (l *Live) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return l.set.Load().Match(r, dst)
}
