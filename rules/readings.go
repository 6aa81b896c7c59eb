package rules

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// matchedCheck is a check and the number of its rule's entry, by which checks are sorted.
type matchedCheck struct {
	entry int32
	check tidegate.Check
}

// matchEach is Match for a path that can be read in several ways. Each reading is matched as if it
// were the only one, with its own exemptions, conditions, branches and wildcards; the request is
// held to all resulting checks. Those of one counter become one, so that it is charged once.
func (st *state) matchEach(dst []tidegate.Check) []tidegate.Check {
	var all []matchedCheck
	var checks []tidegate.Check
	at := make(map[charge][]int)
	add := func(entry int32, c tidegate.Check) {
		of := chargeOf(&c)
		for _, n := range at[of] {
			if joinCheck(&all[n].check, &c) {
				return
			}
		}
		at[of] = append(at[of], len(all))
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

// charge is what a check charges, and as what: checks of several readings with the same one can become
// one check. What marks or tries stays apart from what decides, and what gives way for a while from
// what does not.
type charge struct {
	counter  string          // its identity
	refuses  *tidegate.Limit // instead of counter, if nothing is counted
	key      string
	role     tidegate.Role
	advisory bool
	maxOver  time.Duration
}

func chargeOf(c *tidegate.Check) charge {
	of := charge{key: c.Key, role: c.Limit.Terms.Role, advisory: c.Advisory, maxOver: c.Limit.Terms.MaxOver}
	if c.Limit.Algorithm == tidegate.Deny {
		of.refuses = c.Limit
	} else {
		of.counter = c.Limit.Identity()
	}
	return of
}

// joinCheck makes c and other, which have the same charge, one check: under the tighter limit, with
// the highest cost. It returns false if neither limit is the tighter one: of two buckets, one may hold
// less and refill faster. It also does if only the higher cost is an estimate: what is given back of it
// when it is settled may be all of it, and the other cost stays.
func joinCheck(c, other *tidegate.Check) bool {
	joined := *c
	switch {
	case c.Estimate && !other.Estimate && c.Cost > other.Cost, other.Estimate && !c.Estimate && other.Cost > c.Cost:
		return false
	case atLeastAsTight(c, other):
	case atLeastAsTight(other, c):
		joined = *other
	default:
		return false
	}
	joined.Cost = max(c.Cost, other.Cost)
	joined.MaxWait = min(c.MaxWait, other.MaxWait)
	joined.Estimate = c.Estimate && other.Estimate // a cost that is not settled in one reading stays, and is no lower
	*c = joined
	return true
}

// atLeastAsTight reports whether a check of c never admits what one of other would refuse at the same
// cost.
func atLeastAsTight(c, other *tidegate.Check) bool {
	a, b := c.Limit, other.Limit
	if a.Capacity()-c.Floor > b.Capacity()-other.Floor {
		return false
	}
	switch a.Algorithm {
	case tidegate.TokenBucket, tidegate.LeakyBucket:
		return float64(a.Events)*float64(b.Period) <= float64(b.Events)*float64(a.Period)
	}
	return true
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
