package rules

import (
	"slices"
	"strings"
	"time"
)

// succession finds, for the limits of rules, those of others in whose place they are.
type succession struct {
	now     time.Time
	had     *predecessors // of the limits before
	before  predecessors
	changes []Change
	told    map[Change]bool
	// paired, if it is set, is called for each limit of a rule that takes the place of another.
	paired func(rule string, old, now *counter)
}

// newSuccession compares the limits of each rule by where they stand: in the rule itself, or
// in a branch.
func newSuccession(old, new ledger, had *predecessors, now time.Time) *succession {
	s := &succession{now: now, had: had, told: make(map[Change]bool)}
	s.compare(old, new)
	return s
}

func (s *succession) compare(old, new ledger) {
	was := make(map[string]*account, len(old))
	for _, a := range old {
		if a != nil {
			was[a.Rule] = a
		}
	}
	for _, a := range new {
		s.rule(was[a.Rule], a)
	}
}

func (s *succession) rule(old, a *account) {
	if old == nil || len(old.Plans) == 0 {
		for i := range a.Scopes {
			s.fresh(a, i, "the rule is new, or counted nothing")
		}
		return
	}
	s.gone(old, a)
	s.regroup(old, a)
	ends, branches := lives{old.Lives, a.lookbacks}, old.branches()
	for i, scope := range a.Scopes {
		j := slices.Index(old.Scopes, scope)
		if j < 0 {
			s.fresh(a, i, "`per` has changed")
			continue
		}
		for n := range a.Plans {
			s.pair(a, old.planLike(a, n, branches).at(j), a.Plans[n].at(i), ends)
		}
		s.pair(a, old.Blocks.at(j), a.Blocks.at(i), ends)
	}
}

// fresh tells of limits that have nothing before them.
func (s *succession) fresh(a *account, i int, why string) {
	for n := range a.Plans {
		all := a.Plans[n].at(i)
		for j := range all {
			s.tell(a, &all[j], "", why, 0)
		}
	}
}

// pair attaches each limit to the one in whose place it is: of those that stand for the
// same and count the same caller, the one of the same period, else the next in order.
func (s *succession) pair(r *account, old, all []counter, ends lives) {
	open := make([]*counter, len(all))
	for i := range all {
		open[i] = &all[i]
	}
	took := make(map[*counter]*counter, len(all)) // the one in whose place each is
	var left []*counter
	for i := range old {
		left = append(left, &old[i])
	}
	for _, alike := range []func(c *counter) string{
		func(c *counter) string { return c.limit.Identity() },
		func(c *counter) string { return c.class() + period(&c.limit.Spec).String() },
		(*counter).class,
	} {
		queues := make(map[string][]*counter)
		for _, o := range left {
			queues[alike(o)] = append(queues[alike(o)], o)
		}
		taken := make(map[*counter]bool)
		open = slices.DeleteFunc(open, func(c *counter) bool {
			queue := queues[alike(c)]
			if len(queue) == 0 {
				return false
			}
			queues[alike(c)] = queue[1:]
			taken[queue[0]], took[c] = true, queue[0]
			s.follow(r, queue[0], c, ends)
			return true
		})
		left = slices.DeleteFunc(left, func(o *counter) bool { return taken[o] })
	}
	for i := range all {
		switch c := &all[i]; {
		case !slices.Contains(open, c):
		case c.strict && took[&all[i+1]] != nil: // the limit was hard before
			s.attach(r, took[&all[i+1]], c, ends)
		default:
			s.tell(r, c, "", "there was no such limit in its place", 0)
		}
	}
	for i := range old {
		if o := &old[i]; o.strict && i+1 < len(old) && slices.Contains(left, o) {
			s.harden(r, o, &old[i+1], all, took, ends)
		}
	}
}

// harden attaches the nominal limit o to the hard limit that is in the place of its ceiling. That of a bucket has
// less of what was used, as it drains faster, and in an outage an instance may know of o alone.
func (s *succession) harden(r *account, o, ceiling *counter, all []counter, took map[*counter]*counter, ends lives) {
	for i := range all {
		if took[&all[i]] == ceiling {
			s.attach(r, o, &all[i], ends)
		}
	}
}

// follow puts c in the place of o.
func (s *succession) follow(r *account, o, c *counter, ends lives) {
	if s.paired != nil {
		s.paired(r.Rule, o, c)
	}
	s.attach(r, o, c, ends)
}

// attach makes o a predecessor of c.
func (s *succession) attach(r *account, o, c *counter, ends lives) {
	if o.anchored && !c.anchored {
		s.tell(r, c, o.text(), "the quota before it started on a day of each caller", 0)
		return
	}
	if o.limit.Identity() == c.limit.Identity() && o.anchored == c.anchored { // it goes on
		for _, l := range c.each() {
			s.inherit(l.Identity(), l.Identity())
		}
		return
	}
	lasts := ends.of(o, c)
	s.tell(r, c, o.text(), "", lasts)
	for i, l := range c.each() {
		was := o.limit
		if o.anchored {
			was = o.each()[i]
		}
		s.inherit(l.Identity(), was.Identity())
		s.before.add(l.Identity(), &predecessor{limit: was, until: s.now.Add(lasts)})
	}
}

// inherit attaches what still counts of the predecessors of an identity.
func (s *succession) inherit(identity, from string) {
	if s.had == nil {
		return
	}
	for _, p := range s.had.of[from] {
		if s.now.Before(p.until) {
			s.before.add(identity, p)
		}
	}
}

// tell adds a change of c, once for all branches and ways to find who is counted.
func (s *succession) tell(r *account, c *counter, was, why string, lasts time.Duration) {
	_, part, _ := strings.Cut(c.limit.Scope, "#")
	change := Change{Rule: r.Rule, Part: part, Limit: c.text(), Was: was, For: lasts, Why: why}
	if !s.told[change] {
		s.told[change] = true
		s.changes = append(s.changes, change)
	}
}

// lives is for how long counters of a rule remember, by identity: old is of those before,
// fresh of those in their place.
type lives struct{ old, fresh map[string]time.Duration }

// of is how long requests are held to o beside c: as long as both would count what was used.
func (l lives) of(o, c *counter) time.Duration {
	return min(l.old[o.limit.Identity()], l.fresh[c.limit.Identity()])
}

// planLike is the plan that the n-th of another account takes the place of: of a branch the one
// with the same conditions, or in the same place. by is the branches by conditions.
func (a *account) planLike(other *account, n int, by map[string]*counters) *counters {
	if n == 0 {
		return &a.Plans[0]
	}
	if p := by[other.Plans[n].Conditions]; p != nil {
		return p
	}
	if n < len(a.Plans) {
		return &a.Plans[n]
	}
	return &a.Plans[0]
}

// branches are the plans of the rule's branches, by their conditions.
func (a *account) branches() map[string]*counters {
	by := make(map[string]*counters, len(a.Plans))
	for i := len(a.Plans) - 1; i > 0; i-- {
		by[a.Plans[i].Conditions] = &a.Plans[i]
	}
	return by
}
