package telemetry

import (
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate/internal/telemetry/offenders"
)

// ruleMetrics counts for a rule, apart from what combinations of rules count.
type ruleMetrics struct {
	name string
	who  *offenders.Rule // where its decisions are told; nil if there are no lists
	gone atomic.Bool     // it is no longer shown
	_    cacheLinePad
	counters
}

// Tell passes all decisions that Metrics observe on to lists: looking up a rule for both takes half
// as long as for each. Call it before the first request is decided.
func (m *Metrics) Tell(lists *offenders.Offenders) { m.lists = lists }

func (m *Metrics) newRule(name string) *ruleMetrics {
	r := &ruleMetrics{name: name}
	if m.lists != nil {
		r.who = m.lists.Rule(name)
	}
	return r
}

// ruleCache finds rules by the addresses of their names, which all limits of a rule share.
type ruleCache [256]atomic.Pointer[ruleMetrics]

// rule returns the counts of a rule.
func (m *Metrics) rule(name string) *ruleMetrics {
	at := &m.cache[uintptr(unsafe.Pointer(unsafe.StringData(name)))>>4%uintptr(len(m.cache))]
	if r := at.Load(); r != nil && r.name == name && !r.gone.Load() {
		return r
	}
	r := m.rules.get(name)
	at.Store(r)
	return r
}

// setRules forgets the rules that are not among names. The counts of doors stay.
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
