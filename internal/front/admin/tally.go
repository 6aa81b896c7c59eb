package admin

import (
	"cmp"
	"slices"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

// tally counts how the keys of a counter would be affected by other limits.
type tally struct {
	carried *rules.Carried
	asked   []tidegate.Check
	// was and now have, for each version of the limit, the index in asked of the check as it is and as it
	// would be; -1 for a limit that never refuses.
	was, now []int

	live, refused, atLeast, atMost, freed int64
	names                                 []namedKey
}

// namedKey is a key that would be newly refused, and what it has left now.
type namedKey struct {
	key  string
	left int64
}

func newTally(c *rules.Carried) *tally {
	t := &tally{carried: c}
	index := func(check tidegate.Check) int {
		if check.Limit == nil {
			return -1
		}
		for i := range t.asked {
			if t.asked[i] == check {
				return i
			}
		}
		t.asked = append(t.asked, check)
		return len(t.asked) - 1
	}
	for _, v := range c.Versions {
		t.was, t.now = append(t.was, index(v.Was)), append(t.now, index(v.Now))
	}
	return t
}

// split reports whether instances count separately.
func (t *tally) split() bool {
	return slices.ContainsFunc(t.asked, func(c tidegate.Check) bool {
		terms := c.Limit.Terms
		return terms != nil && (terms.Handling.Consistency == tidegate.Split || terms.Handling.Consistency == tidegate.Eventual)
	})
}

// add counts a key. left has, for each check in asked, how much it leaves for the key.
func (t *tally) add(key string, left []int64) {
	refuses := func(i int) bool { return i >= 0 && left[i] == 0 }
	any, all, before, freed := false, true, true, true
	room := int64(-1)
	for i := range t.was {
		was, now := refuses(t.was[i]), refuses(t.now[i])
		any, all = any || now && !was, all && now && !was
		before, freed = before && was, freed && was && !now
		if t.was[i] >= 0 {
			room = max(room, left[t.was[i]])
		}
	}
	t.live++
	if before {
		t.refused++
	}
	if freed {
		t.freed++
	}
	if any {
		t.atMost++
	}
	if all {
		t.atLeast++
	}
	if any && key != "" {
		t.name(namedKey{key, room})
	}
}

// name adds a key to the names, of which the ones with the least left are kept.
func (t *tally) name(k namedKey) {
	t.names = append(t.names, k)
	if len(t.names) < 4*maxPlanNames {
		return
	}
	t.sortNames()
	t.names = t.names[:maxPlanNames]
}

func (t *tally) sortNames() {
	slices.SortFunc(t.names, func(a, b namedKey) int { return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.key, b.key)) })
}

// keys returns the totals, extrapolated from the examined share.
func (t *tally) keys(seen float64, subject func(*tidegate.Limit, string) []offenders.Part) KeysPlan {
	all := func(n int64) int64 { return int64(float64(n)/seen + 0.5) }
	k := KeysPlan{
		Rule: t.carried.Rule, Was: t.carried.Was, Now: t.carried.Now, Seen: seen,
		Keys: all(t.live), Refused: all(t.refused), Freed: all(t.freed), AtLeast: all(t.atLeast), AtMost: all(t.atMost),
		Margin: margin(t.atMost, t.live, seen),
	}
	t.sortNames()
	for _, n := range t.names[:min(len(t.names), maxPlanNames)] {
		if subject != nil {
			k.Names = append(k.Names, subject(t.asked[0].Limit, n.key))
		}
	}
	return k
}
