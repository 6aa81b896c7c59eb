package telemetry

import (
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/internal/telemetry/outcome"
)

const (
	// maxCombined is how many rules a combination can have. Requests of more rules are counted rule
	// by rule, as are those of combinations that do not fit into the table.
	maxCombined  = 8
	combinations = 256
	maxProbes    = 4
	// maxDoors is how many doors a combination counts.
	maxDoors = 8
	stripes  = 16
)

// combination counts the usual requests that were held to the same set of rules: those admitted
// with outcome ok by the store. One count stands for one of each rule, of the door and of who
// decided.
type combination struct {
	_ cacheLinePad
	// names are the names of the rules, in the order of the checks. They are kept so that their
	// memory is not reused: names are compared by address.
	names [maxCombined]string
	named int                          // length of names
	at    *atomic.Pointer[combination] // its place in the table, until it is retired
	// of are the rules. There are fewer than names if limits of a rule have its name from several
	// places in memory.
	of  [maxCombined]*ruleMetrics
	who [maxCombined]*offenders.Rule // their lists of offenders; nil if there are none
	n   int                          // number of rules
	// counts is allocated separately, so that stripes are aligned to their size.
	counts *[stripes]stripe
	_      cacheLinePad
}

// cacheLinePad pads memory that all processors read, so that it shares no cache line with memory that is
// written.
type cacheLinePad [64]byte

// stripe has the counts by door, in one cache line.
type stripe [maxDoors]atomic.Uint64

// add counts n requests of a door. The stripe is chosen by the address of the stack, so goroutines
// that run at the same time mostly use different ones.
func (c *combination) add(door int, n uint64) {
	var here byte
	const spread = 0x9e3779b97f4a7c15
	at := uint64(uintptr(unsafe.Pointer(&here))>>11) * spread >> 60
	c.counts[at%stripes][door].Add(n)
}

// counted returns the count of a door.
func (c *combination) counted(door int) (n uint64) {
	for i := range c.counts {
		n += c.counts[i][door].Load()
	}
	return n
}

// take returns the count of a door, and resets it.
func (c *combination) take(door int) (n uint64) {
	for i := range c.counts {
		n += c.counts[i][door].Swap(0)
	}
	return n
}

// is reports whether c is the combination of these names. It compares addresses: equal names at
// different addresses have different combinations.
func (c *combination) is(names []string) bool {
	if c.named != len(names) {
		return false
	}
	for i, name := range names {
		if unsafe.StringData(c.names[i]) != unsafe.StringData(name) || len(c.names[i]) != len(name) {
			return false
		}
	}
	return true
}

// usual reports whether d is counted in the combination of its rules, if there is one.
func (door *Door) usual(d *tidegate.Decision) bool {
	return d.OK && d.Err == nil && !d.Soft && !d.Queued && d.Limit != nil &&
		d.Receipt.Origin == tidegate.OriginStore && door.index < maxDoors
}

// byRules returns the combination for the rules of checks, and creates it if there is none.
func (m *Metrics) byRules(checks []tidegate.Check) *combination {
	var space [maxCombined]string
	names := space[:0]
	hash := uintptr(0)
	for i := range checks {
		name := ruleOf(checks[i].Limit)
		data := unsafe.StringData(name)
		if n := len(names); n > 0 && unsafe.StringData(names[n-1]) == data {
			continue // the checks of a rule are adjacent
		} else if n == maxCombined {
			return nil
		}
		names = append(names, name)
		hash = hash*31 + uintptr(unsafe.Pointer(data))>>4
	}
	if len(names) == 0 {
		return nil
	}
	for i := range uintptr(maxProbes) {
		at := &m.combined[(hash+i)%combinations]
		c := at.Load()
		if c == nil {
			return m.combine(at, names)
		}
		if c.is(names) {
			return c
		}
	}
	return nil
}

// combine creates the combination of rules, unless rules are just being changed or exported.
func (m *Metrics) combine(at *atomic.Pointer[combination], names []string) *combination {
	if !m.showing.TryLock() {
		return nil
	}
	defer m.showing.Unlock()
	c := &combination{named: len(names), at: at, counts: new([stripes]stripe)}
	copy(c.names[:], names)
	for i, name := range names {
		if i > 0 && name == names[i-1] { // another limit of the same rule, with the name at another address
			continue
		}
		c.of[c.n] = m.rule(name)
		c.who[c.n] = c.of[c.n].who
		c.n++
	}
	if !at.CompareAndSwap(nil, c) {
		return nil
	}
	return c
}

// retiredCombination is no longer in the table. A goroutine that has looked it up before may still
// add to it.
type retiredCombination struct {
	*combination
	at time.Time
}

// keepRetired is for how long a retired combination is still exported: longer than any goroutine
// takes between looking it up and counting.
const keepRetired = time.Minute

// retireCombinations empties the table, because the names of the next rules are at other addresses.
// The counts are still exported, and a later call adds them to rules and doors. The caller holds
// showing.
func (m *Metrics) retireCombinations() {
	now := time.Now()
	m.retired = slices.DeleteFunc(m.retired, func(c retiredCombination) bool {
		m.settle(c.combination)
		return now.Sub(c.at) > keepRetired
	})
	for i := range m.recent {
		m.recent[i].Store(nil)
	}
	for i := range m.combined {
		if c := m.combined[i].Swap(nil); c != nil {
			m.retired = append(m.retired, retiredCombination{c, now})
		}
	}
}

// settle moves the counts of c to its rules, to the doors and to who decided.
func (m *Metrics) settle(c *combination) {
	for i, door := range m.doors[:min(len(m.doors), maxDoors)] {
		n := c.take(i)
		door.requests.addMany(outcome.OK, int64(n))
		m.decided[tidegate.OriginStore].Add(n)
		for _, r := range c.of[:c.n] {
			r.addMany(outcome.OK, int64(n))
		}
	}
}

// combinedCounts are the totals of all combinations.
type combinedCounts struct {
	all   uint64
	doors [maxDoors]uint64
	rules map[*ruleMetrics]uint64
}

// combinedCounts adds up all combinations. The caller holds showing.
func (m *Metrics) combinedCounts() combinedCounts {
	sum := combinedCounts{rules: make(map[*ruleMetrics]uint64)}
	add := func(c *combination) {
		for i := range sum.doors {
			n := c.counted(i)
			sum.all += n
			sum.doors[i] += n
			for _, r := range c.of[:c.n] {
				sum.rules[r] += n
			}
		}
	}
	for i := range m.combined {
		if c := m.combined[i].Load(); c != nil {
			add(c)
		}
	}
	for _, c := range m.retired {
		add(c.combination)
	}
	return sum
}
