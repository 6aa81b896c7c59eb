package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// gone reports the tiers and rows that a rule no longer has, with what their requests are held to
// now, and the branches whose requests lose what they have used.
func (s *succession) gone(old, a *account) {
	branches := old.branches()
	for i := range old.Plans {
		was := &old.Plans[i]
		if !was.made() {
			s.goneBranch(old, a, i, branches)
			continue
		}
		if slices.ContainsFunc(a.Plans, was.standsFor) {
			continue
		}
		now := a.planOf(was)
		change := Change{Rule: a.Rule, Gone: was.name(), Who: was.who(), Limit: now.text(), Was: was.text()}
		change.Counted = kept(was, now, old.planLike(a, slices.IndexFunc(a.Plans, func(c counters) bool { return c.Conditions == now.Conditions }), branches))
		if apart := a.merged(was); apart != "" {
			change.Counted = "are counted with all other values of " + apart
		} else if change.Limit == change.Was {
			continue // for these requests nothing changes
		}
		s.add(change)
	}
}

// goneBranch reports that the i-th branch is gone, if none replaces it.
func (s *succession) goneBranch(old, a *account, i int, branches map[string]*counters) {
	has := func(conditions string) bool {
		return slices.ContainsFunc(a.Plans, func(c counters) bool { return c.Conditions == conditions })
	}
	was, now := &old.Plans[i], &a.Plans[0]
	if i == 0 || len(was.at(0)) == 0 || has(was.Conditions) || i < len(a.Plans) && branches[a.Plans[i].Conditions] == nil {
		return
	}
	if counted := kept(was, now, &old.Plans[0]); counted != keptAll {
		s.add(Change{Rule: a.Rule, Gone: "a branch", Who: was.who(), Limit: now.text(), Was: was.text(), Counted: counted})
	}
}

// add adds a change once.
func (s *succession) add(c Change) {
	if !s.told[c] {
		s.told[c] = true
		s.changes = append(s.changes, c)
	}
}

const keptAll = "keep what they have used"

// kept says whether requests that move from the plan `was` to the plan `now` keep what they have
// used. before is the plan of the earlier rules that `now` replaces: a limit with another algorithm
// or period has new counters, which continue those of before.
func kept(was, now, before *counters) string {
	has := func(p *counters, identity string) bool {
		return slices.ContainsFunc(p.at(0), func(c counter) bool { return c.limit.Identity() == identity })
	}
	some, all := false, true
	for _, c := range now.at(0) {
		if strings.Contains(c.limit.Scope, "#") {
			continue
		}
		goesOn := has(was, c.limit.Identity())
		if !has(before, c.limit.Identity()) { // it continues a counter of before
			goesOn = goesOn || slices.ContainsFunc(before.at(0), func(b counter) bool {
				return b.class() == c.class() && has(was, b.limit.Identity())
			})
		}
		some, all = some || goesOn, all && goesOn
	}
	switch {
	case all:
		return keptAll
	case some:
		return "keep what they have used of limits that they had"
	}
	return "start with empty counters"
}

// standsFor reports whether c and other are the same tier and row.
func (c *counters) standsFor(other counters) bool {
	return c.Tier == other.Tier && slices.Equal(c.Row, other.Row)
}

// planOf returns the plan in a for requests of was: the first one of the same tier, or of no tier,
// whose row values was has; else the plan of the rule itself.
func (a *account) planOf(was *counters) *counters {
	tiers := []string{was.Tier}
	if was.Tier != "" {
		tiers = append(tiers, "")
	}
	for _, tier := range tiers {
		known := tier == "" || slices.ContainsFunc(a.Plans, func(c counters) bool { return c.Tier == tier })
		for i := 1; i < len(a.Plans) && known; i++ {
			p := &a.Plans[i]
			if p.Tier == tier && (p.Tier != "" || len(p.Row) > 0) && within(p.Row, was.Row) {
				return p
			}
		}
	}
	return &a.Plans[0]
}

// within reports whether row has all of values.
func within(values, row []rulefile.RowValue) bool {
	return !slices.ContainsFunc(values, func(v rulefile.RowValue) bool { return !slices.Contains(row, v) })
}

// merged returns the identity whose values are no longer counted apart for requests of was; "" if
// they still are.
func (a *account) merged(was *counters) string {
	values := was.Row
	if was.Tier != "" {
		values = append(values[:len(values):len(values)], rulefile.RowValue{Name: was.TierBy, Value: was.Tier})
	}
	for _, v := range values {
		if rows, ok := a.Rows[v.Name]; ok && !slices.Contains(rows, v.Value) {
			return v.Name
		}
	}
	return ""
}

func (c *counters) name() string {
	var names []string
	if c.Tier != "" {
		names = append(names, "tier "+c.Tier)
	}
	if len(c.Row) > 0 {
		values := make([]string, len(c.Row))
		for i, v := range c.Row {
			values[i] = v.Value
		}
		names = append(names, "row "+strings.Join(values, ", "))
	}
	return strings.Join(names, ", ")
}

// who describes the requests that c is for, by its conditions.
func (c *counters) who() string {
	conditions, _, _ := strings.Cut(c.Conditions, "unless\n")
	lines := strings.Split(strings.TrimSuffix(conditions, "\n"), "\n")
	return strings.ReplaceAll(strings.Join(lines, " and "), ": ", " ")
}

// text lists the limits of c, in its first scope.
func (c *counters) text() string {
	var all []string
	for _, one := range c.at(0) {
		if !strings.Contains(one.limit.Scope, "#") {
			all = append(all, one.text())
		}
	}
	if len(all) == 0 {
		return "no limit"
	}
	return strings.Join(all, " and ")
}

// regroup reports values that were counted apart and are now counted together, or the reverse.
func (s *succession) regroup(old, a *account) {
	for _, name := range slices.Sorted(maps.Keys(a.Rows)) {
		had, ok := old.Rows[name]
		if !ok {
			if slices.ContainsFunc(old.Scopes, func(scope string) bool { return slices.Contains(strings.Split(scope, ","), name) }) {
				s.freshFor(a, "all other values of "+name, "each value had its own, and now they share one")
			}
			continue
		}
		for _, value := range a.Rows[name] {
			if !slices.Contains(had, value) {
				s.freshFor(a, fmt.Sprintf("%s %q", name, value), "it was counted with all other values")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Rows)) {
		if _, ok := a.Rows[name]; !ok && slices.ContainsFunc(a.Scopes, func(scope string) bool { return slices.Contains(strings.Split(scope, ","), name) }) {
			s.freshFor(a, "all other values of "+name, "they shared one, and now each value has its own")
		}
	}
}

// freshFor reports counters that start empty for some requests.
func (s *succession) freshFor(a *account, who, why string) {
	change := Change{Rule: a.Rule, Who: who, Why: why}
	if !s.told[change] {
		s.told[change] = true
		s.changes = append(s.changes, change)
	}
}
