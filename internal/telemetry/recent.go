package telemetry

import (
	"sync/atomic"
	"unsafe"

	"tidegate.dev/tidegate"
)

// maxRecent is how many limits a request may have whose combination is remembered.
const maxRecent = 16

// recent remembers the combination of requests with these limits. Limits are quicker to compare than
// the names of their rules. A slot is filled once: limits that come and go, such as those that a
// request brings along, do not replace others.
type recent struct {
	of     *combination
	n      int // limits
	limits [maxRecent]*tidegate.Limit
}

// has reports whether the limits are those of checks.
func (k *recent) has(checks []tidegate.Check) bool {
	if k.n != len(checks) {
		return false
	}
	for i := range checks {
		if checks[i].Limit != k.limits[i] {
			return false
		}
	}
	return true
}

// combination returns the combination for the rules of checks. It returns nil if there is none, and if
// a check is over its limit: such requests are counted rule by rule.
func (m *Metrics) combination(checks []tidegate.Check) *combination {
	hash := uintptr(0)
	for i := range checks {
		c := &checks[i]
		if c.Limit == nil {
			checks = checks[:i]
			break
		}
		if c.Over {
			return nil
		}
		hash = hash*31 + uintptr(unsafe.Pointer(c.Limit))>>4
	}
	at := &m.recent[hash%combinations]
	k := at.Load()
	if k != nil && k.has(checks) {
		return k.of
	}
	c := m.byRules(checks)
	if k == nil && c != nil && len(checks) <= maxRecent {
		m.remember(at, checks, c)
	}
	return c
}

// remember stores the combination of checks in an empty slot, unless rules are just being changed or
// exported.
func (m *Metrics) remember(at *atomic.Pointer[recent], checks []tidegate.Check, c *combination) {
	if !m.showing.TryLock() {
		return
	}
	defer m.showing.Unlock()
	if c.at.Load() != c { // it was retired meanwhile
		return
	}
	k := &recent{n: len(checks), of: c}
	for i := range checks {
		k.limits[i] = checks[i].Limit
	}
	at.CompareAndSwap(nil, k)
}
