package rules

import (
	"cmp"
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// compareOrders compares orders by precedence: more specific ones come first, then later ones.
func compareOrders(a, b *order) int {
	return cmp.Or(
		cmp.Compare(len(b.who), len(a.who)),
		cmp.Compare(particular(b.who), particular(a.who)),
		b.measure.At.Compare(a.measure.At),
		cmp.Compare(b.measure.ID, a.measure.ID),
	)
}

// particular returns how specific who is: a larger number for fewer callers.
func particular(who []holder) (sum int) {
	for i := range who {
		switch w := &who[i]; {
		case w.everyone:
		case w.network.IsValid() && w.network.Addr().Is4():
			sum += 96 + w.network.Bits()
		case w.network.IsValid():
			sum += w.network.Bits()
		default:
			sum += 129
		}
	}
	return sum
}

// measures are the measures in force, indexed for lookups.
type measures struct {
	set   *Set
	bans  *orderIndex     // of all requests; nil means none
	rules []*ruleMeasures // by entry; nil means none
	// The parts that the next measures can reuse.
	variants map[string]*variant
	limits   map[banKey]*tidegate.Limit
}

// ruleMeasures are the measures about one rule.
type ruleMeasures struct{ bans, overrides *orderIndex }

// compileMeasures compiles those of all that have not ended. It returns nil if none can be in
// force, and the problems of those that cannot. before are the measures that were in force until
// now.
func compileMeasures(s *Set, all []Measure, now time.Time, before *measures) (*measures, []MeasureProblem) {
	c := newMeasureCompiler(s, before)
	var orders []*order
	for i := range all {
		if all[i].Ended(now) {
			continue
		}
		if o := c.order(&all[i]); o != nil {
			orders = append(orders, o)
		}
	}
	if len(orders) == 0 {
		return nil, c.problems
	}
	slices.SortFunc(orders, compareOrders)
	m := &measures{set: s, rules: make([]*ruleMeasures, len(s.entries)), variants: c.variants, limits: c.bans}
	var bans []*order
	byRule := make(map[*rule][2][]*order)
	for i, o := range orders {
		o.rank = i
		if o.rule == nil {
			bans = append(bans, o)
			continue
		}
		both := byRule[o.rule]
		kind := 0
		if o.measure.Kind == Override {
			kind = 1
		}
		both[kind] = append(both[kind], o)
		byRule[o.rule] = both
	}
	m.bans = newOrderIndex(bans)
	for i := range s.entries {
		if both, ok := byRule[s.entries[i].rule]; ok {
			m.rules[i] = &ruleMeasures{bans: newOrderIndex(both[0]), overrides: newOrderIndex(both[1])}
		}
	}
	return m, c.problems
}
