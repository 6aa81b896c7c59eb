package lint

import (
	"cmp"
	"slices"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// scenario is one way to request a route: which of the values that rules look at the caller sends.
// A value is invented, or that of an ordinary caller.
type scenario struct {
	shows map[string]bool // by variable
	// proves: one of the values cannot be invented.
	proves bool
	// known: the values are those that conditions ask for.
	known bool
}

// maxVariables bounds the scenarios to try; further variables are left out in all of them.
const maxVariables = 10

// scenarios returns all combinations that the conditions and identities of rules distinguish, those
// with the fewest values first.
func (p *pass) scenarios(rules []*rulefile.Rule) []scenario {
	var names []string
	proved := make(map[string]bool)
	for _, s := range p.looked(rules) {
		p.step(1 + len(names))
		v, ok := variable(s)
		if ok && !slices.Contains(names, v) {
			names = append(names, v)
			proved[v] = proof(s)
		}
	}
	names = names[:min(len(names), maxVariables)]
	all := make([]scenario, 1<<len(names))
	for mask := range all {
		w := &all[mask]
		w.shows = make(map[string]bool)
		for i, name := range names {
			if mask>>i&1 == 1 {
				w.shows[name] = true
				w.proves = w.proves || proved[name]
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scenario) int { return cmp.Compare(len(a.shows), len(b.shows)) })
	return all
}

// looked returns the sources that rules look at.
func (p *pass) looked(rules []*rulefile.Rule) []rulefile.Source {
	var all []rulefile.Source
	done := make(map[string]bool)
	for _, r := range rules {
		p.step(1 + len(r.For))
		for _, name := range namesOf(r) {
			if !done[name] {
				done[name] = true
				all = append(all, p.sources(name)...)
			}
		}
	}
	return all
}

// namesOf returns the identities that decide whether r applies, and what it does.
func namesOf(r *rulefile.Rule) []string {
	var names []string
	for _, per := range r.Per {
		names = append(names, per.Text)
	}
	all := [][]rulefile.Condition{r.When, r.Unless}
	for _, b := range r.For {
		all = append(all, b.When, b.Unless)
	}
	for _, g := range all {
		for _, c := range g {
			names = append(names, c.Name.Text)
		}
	}
	return names
}

// find returns the source that the value of name comes from in scenario w; false if it is missing.
func (p *pass) find(name string, a at, w scenario) (rulefile.Source, bool) {
	for _, s := range p.sources(name) {
		switch controlOf(s, a.route) {
		case proved, claimed:
			if v, _ := variable(s); w.shows[v] {
				return s, true
			}
		case chosen:
			if s.Kind != rulefile.SourcePathWildcard || hasWildcard(a.own, s.Arg) {
				return s, true
			}
		default:
			return s, true
		}
	}
	return rulefile.Source{}, false
}

// holds reports whether a request of w passes a when and an unless. A known value is what the when
// asks for; it counts for the unless only if both ask for the same, as tier-by-claimed-value checks
// the unless.
func (p *pass) holds(when, unless []rulefile.Condition, a at, w scenario) bool {
	if !all(when, func(c rulefile.Condition) bool { return p.one(c, a, w) }) {
		return false
	}
	known := w.known
	w.known = false
	return len(unless) == 0 || !all(unless, func(c rulefile.Condition) bool {
		return p.one(c, a, w) || known && p.implies(when, []rulefile.Condition{c})
	})
}

// one reports whether c holds in w.
func (p *pass) one(c rulefile.Condition, a at, w scenario) bool {
	s, found := p.find(c.Name.Text, a, w)
	for _, t := range c.Any {
		switch {
		case t.Kind == rulefile.TestAbsent:
			if !found {
				return true
			}
		case found && p.passes(t, s, a, w):
			return true
		}
	}
	return false
}

// passes reports whether t passes for the value from s, which is present. An address is in no list,
// and an invented value is not one that a test names.
func (p *pass) passes(t rulefile.Test, s rulefile.Source, a at, w scenario) bool {
	if t.Kind == rulefile.TestPresent {
		return true
	}
	switch s.Kind {
	case rulefile.SourceMethod:
		return p.tests(t, a.method)
	case rulefile.SourceHost:
		return a.host != "" && p.tests(t, a.host)
	case rulefile.SourceRoute:
		return p.tests(t, a.own.Text)
	}
	return w.known && controlOf(s, a.route) != given
}
