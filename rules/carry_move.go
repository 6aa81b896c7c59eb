package rules

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate"
)

// mostMoves is for how many pairs of branches of a rule it is asked whether callers may go from one
// to the other. Of more, all go to the rule itself.
const mostMoves = 10_000

// move adds what becomes of callers whose branch, tier or row only one version of a rule has: of
// those of a former one, and of those that a new one is for. They keep their counters where the
// others are the same, or are in their place. A branch may also no longer limit its callers.
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

// replacing returns the plans of a that may hold for callers of p, which it does not have; where there
// are not few, only the most likely one.
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

// made reports whether c stands for a tier or a row.
func (c *counters) made() bool { return c.Tier != "" || len(c.Row) > 0 }

// apart reports whether no caller is of both branches: they want different values of an identity.
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

// moved adds the counters of callers that go from one plan of the rule to another.
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

// lift adds that some callers of a counter, which others go on with, are no longer held to it.
func (c *carrier) lift(rule string, o *counter) {
	at, ok := c.at[rule+"\x00"+o.limit.Identity()]
	if !ok || o.tries {
		return
	}
	c.put(rule, at, Version{Was: tidegate.Check{Limit: o.limit, MaxWait: o.maxWait}})
}
