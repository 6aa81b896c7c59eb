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
	// maxCombined rules have a combination; requests of more are counted rule by rule, and so are
	// those of combinations that find no place.
	maxCombined  = 8
	combinations = 256
	maxProbes    = 4
	// maxDoors have combinations.
	maxDoors = 8
	stripes  = 16
)

// combination counts usual requests that were held to the same rules: those admitted with the outcome
// ok, by the store. One count stands for that of each rule, of the door and of who decided.
type combination struct {
	_ apart
	// names are of the rules, in the order of the checks. While they are here, nothing else comes to
	// lie where they do.
	names [maxCombined]string
	named int                          // names
	at    *atomic.Pointer[combination] // where it is in the table, until it is retired
	// of are the rules, which are fewer than names where limits of a rule have it from several places.
	of  [maxCombined]*ruleMetrics
	who [maxCombined]*offenders.Rule // where they are told; nil if there are no lists
	n   int                          // rules
	// counts are not in here, so that each stripe is at a multiple of its size.
	counts *[stripes]stripe
	_      apart
}

// apart keeps what every processor reads away from what is written: two processors fight for 64 bytes.
type apart [64]byte

// stripe counts by door, in as much memory as two processors fight for.
type stripe [maxDoors]atomic.Uint64

// add counts n requests of a door. Goroutines that run at the same time mostly use another stripe,
// as their stacks lie elsewhere.
func (c *combination) add(door int, n uint64) {
	var here byte
	const spread = 0x9e3779b97f4a7c15
	at := uint64(uintptr(unsafe.Pointer(&here))>>11) * spread >> 60
	c.counts[at%stripes][door].Add(n)
}

// counted is how many requests of a door were.
func (c *combination) counted(door int) (n uint64) {
	for i := range c.counts {
		n += c.counts[i][door].Load()
	}
	return n
}

// take is counted, and begins to count anew.
func (c *combination) take(door int) (n uint64) {
	for i := range c.counts {
		n += c.counts[i][door].Swap(0)
	}
	return n
}

// is reports whether c is of the rules of these names. It compares where they lie: limits of a rule
// have its name from one place, and where they do not, they have another combination.
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

// usual reports whether d is counted in a combination, if the rules of its checks have one.
func (door *Door) usual(d *tidegate.Decision) bool {
	return d.OK && d.Err == nil && !d.Soft && !d.Queued && d.Limit != nil &&
		d.Receipt.Origin == tidegate.OriginStore && door.index < maxDoors
}

// byRules returns the combination by the names of the rules of checks, and makes it if there is none.
func (m *Metrics) byRules(checks []tidegate.Check) *combination {
	var space [maxCombined]string
	names := space[:0]
	hash := uintptr(0)
	for i := range checks {
		name := ruleOf(checks[i].Limit)
		data := unsafe.StringData(name)
		if n := len(names); n > 0 && unsafe.StringData(names[n-1]) == data {
			continue // the checks of a rule stand together
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

// combine makes the combination of rules, unless somebody changes them or shows them at this moment.
func (m *Metrics) combine(at *atomic.Pointer[combination], names []string) *combination {
	if !m.showing.TryLock() {
		return nil
	}
	defer m.showing.Unlock()
	c := &combination{named: len(names), at: at, counts: new([stripes]stripe)}
	copy(c.names[:], names)
	for i, name := range names {
		if i > 0 && name == names[i-1] { // a limit of the same rule, from elsewhere
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

// retiredCombination is one that nobody looks up any more. Somebody who did may be about to count.
type retiredCombination struct {
	*combination
	at time.Time
}

// keepRetired is how long a combination is shown after its rules have changed: longer than anybody
// takes from looking it up to counting.
const keepRetired = time.Minute

// retireCombinations empties the table, as the names of the next rules lie elsewhere; showing is
// held. What was counted stays shown, and becomes that of rules and doors at a later change.
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

// settle moves what c has counted to its rules, the doors and who decided.
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

// combinedCounts is what all combinations have counted.
type combinedCounts struct {
	all   uint64
	doors [maxDoors]uint64
	rules map[*ruleMetrics]uint64
}

// combinedCounts adds up all combinations; showing is held.
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
