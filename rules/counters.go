package rules

import "tidegate.dev/tidegate"

// Patterns returns the patterns of a rule as they are written; none for a rule that holds for every
// request, or does not exist.
func (s *Set) Patterns(rule string) []string {
	var all []string
	for i := range s.entries {
		e := &s.entries[i]
		if e.rule == nil || e.rule.name != rule {
			continue
		}
		all = append(all, e.patterns...)
	}
	return all
}

// Limits returns the limits that the rules count by, one for each counter identity. A quota whose
// first day depends on the caller is listed once.
func (s *Set) Limits() []*tidegate.Limit {
	var all []*tidegate.Limit
	seen := make(map[string]bool)
	add := func(l *tidegate.Limit) {
		if l != nil && !seen[l.Identity()] {
			seen[l.Identity()] = true
			all = append(all, l)
		}
	}
	for _, r := range s.rules {
		for _, l := range r.blocks {
			add(l)
		}
		for i := range r.plans {
			p := &r.plans[i]
			for _, items := range append(p.decides[:len(p.decides):len(p.decides)], p.tries...) {
				for j := range items {
					h := items[j].some()
					add(h.nominal)
					add(h.limit)
				}
			}
		}
	}
	return all
}

// some returns the limit of an item; if the limit depends on the caller, one of them.
func (it *item) some() *held {
	if it.vary != nil {
		return it.vary.otherwise
	}
	return &it.held
}
