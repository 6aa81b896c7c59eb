package rules

import (
	"slices"
	"time"

	"tidegate.dev/tidegate"
)

// measures attaches the limits of overrides to those they had under the previous rules, as rule
// does for limits of rules. A reload may change the algorithm that an override counts by, and
// nobody must get a fresh allowance from that.
func (s *succession) measures(old, new *measures) {
	if old == nil || new == nil {
		return
	}
	for key, v := range new.variants {
		was := old.variants[key]
		if was == nil {
			continue
		}
		for _, base := range v.rule.kinds() {
			s.overridden(was, was.plan(was.rule.planLike(base)), v, v.plan(base))
		}
	}
}

// overridden pairs the limits of two plans made by overrides.
func (s *succession) overridden(old *variant, was *plan, v *variant, is *plan) {
	ends := lives{make(map[string]time.Duration), make(map[string]time.Duration)}
	was.eachLimit(func(l *tidegate.Limit, maxWait time.Duration) {
		ends.old[l.Identity()] = max(ends.old[l.Identity()], life(l, maxWait))
	})
	is.eachLimit(func(l *tidegate.Limit, _ time.Duration) {
		ends.fresh[l.Identity()] = max(ends.fresh[l.Identity()], lookback(l))
	})
	before, after := was.counters(), is.counters()
	for i, scope := range v.rule.subject.scopes {
		if j := slices.Index(old.rule.subject.scopes, scope); j >= 0 {
			s.pair(&account{Rule: v.rule.name}, before.at(j), after.at(i), ends)
		}
	}
}

// planLike returns the plan of the branch with the same conditions as p, a plan of another Set; the
// rule's own plan if there is none.
func (r *rule) planLike(p *plan) *plan {
	if p.branch != nil {
		text := p.conds.text()
		for i := range r.plans[1:] {
			if r.plans[1+i].conds.text() == text {
				return &r.plans[1+i]
			}
		}
	}
	return &r.plans[0]
}
