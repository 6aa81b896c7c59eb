package lease

import (
	"hash/maphash"
	"unsafe"

	"tidegate.dev/tidegate"
)

// group is the checks of a vector that are leased together: limits with the same key, scope and
// cost. Each event of a portion counts under every one of these limits.
type group struct {
	checks []tidegate.Check
	from   []int // their indexes in the vector
	hash   uint64
	lease  uint32 // number of the portion that the request was charged to
	at     int64  // Receipt.At of that portion
	lacks  bool   // it has a supply whose portions could not answer: ask for one afterwards
}

// leased reports whether c may be decided from a portion.
func leased(c *tidegate.Check) bool {
	l := c.Limit
	return isLeased(l) && c.Cost > 0 && !c.Advisory && !c.Estimate && c.Floor == 0 && c.MaxWait == 0 &&
		l.Terms.Handling.Queue == nil
}

// isLeased reports whether l is to be leased, and has an algorithm that suits.
func isLeased(l *tidegate.Limit) bool {
	return l != nil && l.Terms != nil && l.Terms.Handling.Consistency == tidegate.Leased &&
		tidegate.Leased.Suits(l.Algorithm) && !l.RawTime
}

func anyLeased(checks []tidegate.Check) bool {
	for i := range checks {
		if leased(&checks[i]) {
			return true
		}
	}
	return false
}

// divide returns the groups of a vector, and the indexes of all other checks. Checks that share a
// counter with another are among the others, since their costs add up.
func divide(checks []tidegate.Check) (groups []group, others []int) {
next:
	for i := range checks {
		c := &checks[i]
		if !leased(c) || twice(checks, c) {
			others = append(others, i)
			continue
		}
		for g := range groups {
			if first := &groups[g].checks[0]; first.Key == c.Key && first.Cost == c.Cost && first.Limit.Scope == c.Limit.Scope {
				groups[g].checks, groups[g].from = append(groups[g].checks, *c), append(groups[g].from, i)
				continue next
			}
		}
		groups = append(groups, group{checks: []tidegate.Check{*c}, from: []int{i}})
	}
	return groups, others
}

// twice reports whether another check has the same counter as c.
func twice(checks []tidegate.Check, c *tidegate.Check) bool {
	for i := range checks {
		if o := &checks[i]; o != c && o.Limit != nil && o.Key == c.Key && o.Limit.Identity() == c.Limit.Identity() {
			return true
		}
	}
	return false
}

// pick returns the checks with the indexes at.
func pick(checks []tidegate.Check, at []int) []tidegate.Check {
	some := make([]tidegate.Check, len(at))
	for i, j := range at {
		some[i] = checks[j]
	}
	return some
}

// hash returns the same number for all groups with the same key and the same Limit pointers,
// whatever the cost.
func (s *Store) hash(checks []tidegate.Check) uint64 {
	sum := maphash.String(s.seed, checks[0].Key)
	for i := range checks {
		sum = (sum ^ uint64(uintptr(unsafe.Pointer(checks[i].Limit)))) * 0x9E3779B97F4A7C15
		sum ^= sum >> 32
	}
	return sum
}

// same reports whether checks have the key and, in the same order, the limits of unit.
func same(unit, checks []tidegate.Check) bool {
	if len(unit) != len(checks) || unit[0].Key != checks[0].Key {
		return false
	}
	for i := range unit {
		if unit[i].Limit != checks[i].Limit {
			return false
		}
	}
	return true
}
