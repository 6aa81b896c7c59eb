package rules

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate"
)

// mostMoves bounds the pairs of branches of a rule that are examined for callers that move from one
// to the other. Beyond it, callers are taken to move to the plan of the rule itself.
const mostMoves = 10_000

// move adds what happens to callers whose plan only one version of the rule has: a branch, tier or
// row that is gone or new. They keep a counter if the other plan has the same one, or one that
// takes its place. The new plan may also no longer limit them.
func (c *carrier) move(old, new ledger) {
	was := make(map[string]*account, len(old))
	for _, a := range old {
		was[a.Rule] = a
	}
	for _, a := range new {
		if o := was[a.Rule]; o != nil && len(o.Plans) > 0 && len(a.Plans) > 0 {
			same := o.branches()
			for i := 1; i < len(a.Plans); i++ {
				if from := same[a.Plans[i].Conditions]; from != nil {
					c.moved(o, a, from, &a.Plans[i])
				}
			}
			gone, fresh := o.beyond(a), a.beyond(o)
			few := (len(gone)+len(fresh))*max(len(o.Plans), len(a.Plans)) <= mostMoves
			for _, from := range gone {
				for _, to := range a.replacing(from, few) {
					c.moved(o, a, from, to)
				}
			}
			for _, to := range fresh {
				for _, from := range o.replacing(to, few) {
					c.moved(o, a, from, to)
				}
			}
		}
	}
}

// beyond returns the plans of branches that other does not have.
func (a *account) beyond(other *account) (all []*counters) {
	has := make(map[string]bool, len(other.Plans))
	for i := range other.Plans {
		has[other.Plans[i].Conditions] = true
	}
	for i := 1; i < len(a.Plans); i++ {
		if !has[a.Plans[i].Conditions] {
			all = append(all, &a.Plans[i])
		}
	}
	return all
}

// replacing returns the plans of a that callers of p may move to, or come from; a does not have p.
// If few is false, it returns only the most likely one.
func (a *account) replacing(p *counters, few bool) []*counters {
	if p.made() {
		return []*counters{a.planOf(p)}
	}
	all := []*counters{&a.Plans[0]}
	for i := 1; i < len(a.Plans) && few; i++ {
		if other := &a.Plans[i]; !p.apart(other) {
			all = append(all, other)
		}
	}
	return all
}

// made reports whether c is the plan of a tier or row, not of a written branch.
func (c *counters) made() bool { return c.Tier != "" || len(c.Row) > 0 }

// apart reports whether no caller can be in both branches, because they require different values of
// an identity.
func (c *counters) apart(other *counters) bool {
	values := func(c *counters) map[string]string {
		when, _, _ := strings.Cut(c.Conditions, "unless\n")
		all := make(map[string]string)
		for line := range strings.Lines(when) {
			name, value, _ := strings.Cut(line, ": ")
			all[name] = value
		}
		return all
	}
	mine := values(c)
	for name, value := range values(other) {
		if v, ok := mine[name]; ok && v != value {
			return true
		}
	}
	return false
}

// moved adds the counters of callers that move from one plan of the rule to another.
func (c *carrier) moved(old, a *account, from, to *counters) {
	for i, scope := range a.Scopes {
		j := slices.Index(old.Scopes, scope)
		if j < 0 {
			continue
		}
		was, now := from.at(j), to.at(i)
		for o := range was {
			held := false
			for n := range now {
				before, after := was[o].limit.Identity(), now[n].limit.Identity()
				if before == after || c.follows[[3]string{a.Rule, before, after}] {
					c.add(a.Rule, &was[o], &now[n])
					held = true
				}
			}
			if !held {
				c.lift(a.Rule, &was[o])
			}
		}
	}
}

// lift adds that some callers of a counter are no longer held to it, while others still are.
func (c *carrier) lift(rule string, o *counter) {
	at, ok := c.at[rule+"\x00"+o.limit.Identity()]
	if !ok || o.tries {
		return
	}
	c.put(rule, at, Version{Was: tidegate.Check{Limit: o.limit, MaxWait: o.maxWait}})
}
