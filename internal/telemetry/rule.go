package telemetry

import (
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// ruleMetrics is what is counted for a rule, apart from what combinations of rules count.
type ruleMetrics struct {
	name string
	who  *offenders.Rule // where its decisions are told; nil if there are no lists
	gone atomic.Bool     // it is no longer shown
	_    apart
	counters
}

// Tell lets lists hear of all decisions of gates that Metrics hear of: looking up a rule for both
// takes half as long as for each. It must not be called once requests are decided.
func (m *Metrics) Tell(lists *offenders.Offenders) { m.lists = lists }

func (m *Metrics) newRule(name string) *ruleMetrics {
	r := &ruleMetrics{name: name}
	if m.lists != nil {
		r.who = m.lists.Rule(name)
	}
	return r
}

// ruleCache has rules by where their names lie in memory, which is the same for all limits of a
// rule.
type ruleCache [256]atomic.Pointer[ruleMetrics]

// rule returns what is counted for a rule.
func (m *Metrics) rule(name string) *ruleMetrics {
	at := &m.cache[uintptr(unsafe.Pointer(unsafe.StringData(name)))>>4%uintptr(len(m.cache))]
	if r := at.Load(); r != nil && r.name == name && !r.gone.Load() {
		return r
	}
	r := m.rules.get(name)
	at.Store(r)
	return r
}

// setRules forgets the rules that have no name among names. What they counted for doors stays.
func (m *Metrics) setRules(names []string) {
	m.showing.Lock()
	defer m.showing.Unlock()
	m.retireCombinations()
	for _, r := range m.rules.announce(names) {
		r.gone.Store(true)
	}
	for i := range m.cache {
		m.cache[i].Store(nil)
	}
}
