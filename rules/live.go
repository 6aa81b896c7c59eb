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

// Live holds the Set in force, which can be replaced while requests are decided. Use [NewLive].
type Live struct {
	mu    sync.Mutex // held while the Set is replaced
	force atomic.Pointer[force]
}

// force is the Set in force, the limits that it replaced and still have to be kept, and the
// measures.
type force struct {
	set      *Set
	before   *predecessors // nil means that none still counts
	measures *measures     // nil means that none is in force
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

// Swap puts set in force and returns the previous one. A request sees one of them as a whole.
// Counters belong to the names of rules and stay. A limit with another algorithm or period than the
// one it replaces has new counters; requests are then also held to the old ones until nothing used
// under them counts any more. [Compare] lists these limits.
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

// Explain is [Set.Explain] for the Set in force. It includes the counters of earlier rules that
// requests are still held to.
func (l *Live) Explain(r *tidegate.Request) Explanation { return l.state(r).explain("") }

// ExplainRule is Explain for the rule of one name alone. It is fast enough to explain many requests
// against thousands of rules.
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
