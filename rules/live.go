package rules

import (
	"sync"
	"sync/atomic"

	"tidegate.dev/tidegate"
)

var (
	_ tidegate.Matcher = (*Set)(nil)
	_ tidegate.Matcher = (*Live)(nil)
)

// Live is the Set in force, which can be exchanged while requests are decided.
// Use [NewLive].
type Live struct {
	mu    sync.Mutex // held while the Set is exchanged
	force atomic.Pointer[force]
}

// force is a Set, what it took the place of, and the measures beyond it.
type force struct {
	set      *Set
	before   *predecessors // nil means none that still count
	measures *measures     // nil means none that hold
	ordered  *ordered      // nil means none
}

// NewLive returns a Live with set in force.
func NewLive(set *Set) *Live {
	l := new(Live)
	l.force.Store(&force{set: set})
	return l
}

// Set returns the Set in force.
func (l *Live) Set() *Set { return l.force.Load().set }

// Swap puts set in force and returns the one that was. A request sees one or the
// other whole. Counters belong to the rules' names and stay. Where a limit counts by
// another algorithm or over another period than the one in its place did, it has
// counters of its own; requests are then held to the old ones as well, until nothing
// counts there any more that was used before. [Compare] tells which these are.
func (l *Live) Swap(set *Set) *Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.force.Load()
	s := newSuccession(f.set.ledger(), set.ledger(), f.before, set.config.now())
	set.countOn(f.set)
	set.shedOn(f.set)
	next := &force{set: set}
	next.order(f.ordered, nil)
	s.measures(f.measures, next.measures)
	next.before = s.before.end()
	l.force.Store(next)
	return f.set
}

// Match implements [tidegate.Matcher].
func (l *Live) Match(r *tidegate.Request, dst []tidegate.Check) []tidegate.Check {
	return l.state(r).match(dst)
}

// Explain is [Set.Explain] of the Set in force, with the counters of rules before it
// that requests are still held to.
func (l *Live) Explain(r *tidegate.Request) Explanation { return l.state(r).explain("") }

// ExplainRule is Explain with no other rule than that of a name. It takes little longer where there
// are thousands of rules, for those who ask about as many requests.
func (l *Live) ExplainRule(r *tidegate.Request, rule string) Explanation {
	return l.state(r).explain(rule)
}

func (l *Live) state(r *tidegate.Request) *state {
	f := l.force.Load()
	st := f.set.state(r)
	st.measures = f.measures
	if f.before != nil {
		st.before, st.now = f.before, f.set.config.now()
		if !st.now.Before(f.before.until) {
			st.before = nil
			after := *f
			after.before = nil
			l.force.CompareAndSwap(f, &after)
		}
	}
	return st
}
