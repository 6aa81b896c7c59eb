package rules

import (
	"slices"

	"tidegate.dev/tidegate"
)

// matchedCheck is a check and the number of its rule's entry, by which checks are sorted.
type matchedCheck struct {
	entry int32
	check tidegate.Check
}

// matchEach is Match for a path that can be read in several ways. Each reading is matched as if it
// were the only one, with its own exemptions, conditions, branches and wildcards; the request is
// held to all resulting checks. Those of one limit and key become one, with the highest cost and
// floor.
func (st *state) matchEach(dst []tidegate.Check) []tidegate.Check {
	type counter struct {
		limit *tidegate.Limit
		key   string
	}
	var all []matchedCheck
	var checks []tidegate.Check
	at := make(map[counter]int)
	add := func(entry int32, c tidegate.Check) {
		n, had := at[counter{c.Limit, c.Key}]
		if had {
			all[n].check.Cost = max(all[n].check.Cost, c.Cost)
			all[n].check.Floor = max(all[n].check.Floor, c.Floor)
			return
		}
		at[counter{c.Limit, c.Key}] = len(all)
		all = append(all, matchedCheck{entry, c})
	}
	for way := range st.readings {
		st.turnTo(way)
		st.collect()
		first := st.resolveAll()
		for _, c := range st.appendShed(checks[:0]) {
			add(beforeRules, c)
		}
		for i := first; i < len(st.hits); i++ {
			h := &st.hits[i]
			checks = st.append(checks[:0], h)
			for _, c := range checks {
				add(h.entry, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b matchedCheck) int { return int(a.entry - b.entry) })
	for i := range all {
		dst = append(dst, all[i].check)
	}
	return dst
}

// beforeRules stands for the entry of file-wide shedding, whose check comes before those of rules.
const beforeRules = -1

// turnTo switches to another reading of the path and forgets what was found in the previous one. The
// first reading, 0, forgets nothing: it comes first, or after turnBack.
func (st *state) turnTo(way int) {
	if st.way = way; way == 0 {
		return
	}
	clear(st.routes)
	clear(st.hits)
	st.routes, st.hits = st.routes[:0], st.hits[:0]
	for _, slot := range st.set.ids.byPath {
		st.values[slot] = value{}
	}
}
