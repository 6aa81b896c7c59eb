package rules

import (
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// succession finds, for the limits of new rules, the earlier limits that they replace.
type succession struct {
	now     time.Time
	had     *predecessors // predecessors of the earlier limits
	before  predecessors
	changes []Change
	told    map[Change]bool
	// paired, if not nil, is called for each limit of a rule that replaces another.
	paired func(rule string, old, now *counter)
}

// newSuccession compares the limits of each rule by their plans: the rule's own, and those of
// branches.
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
	if len(a.Plans) == 0 {
		return // the rule denies now: it counts nothing
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

// fresh reports limits that replace nothing.
func (s *succession) fresh(a *account, i int, why string) {
	for n := range a.Plans {
		all := a.Plans[n].at(i)
		for j := range all {
			s.tell(a, &all[j], "", why, 0)
		}
	}
}

// pair attaches each limit to the one that it replaces: with the same identity, or else of the same
// class and period, or else of the same class, in order.
func (s *succession) pair(r *account, old, all []counter, ends lives) {
	open := make([]*counter, len(all))
	for i := range all {
		open[i] = &all[i]
	}
	took := make(map[*counter]*counter, len(all)) // the limit that each replaces
	var left []*counter
	for i := range old {
		left = append(left, &old[i])
	}
	for _, interned := range []func(c *counter) string{
		func(c *counter) string { return c.limit.Identity() },
		func(c *counter) string { return c.class() + period(&c.limit.Spec).String() },
		(*counter).class,
	} {
		queues := make(map[string][]*counter)
		for _, o := range left {
			queues[interned(o)] = append(queues[interned(o)], o)
		}
		taken := make(map[*counter]bool)
		open = slices.DeleteFunc(open, func(c *counter) bool {
			queue := queues[interned(c)]
			if len(queue) == 0 {
				return false
			}
			queues[interned(c)] = queue[1:]
			taken[queue[0]], took[c] = true, queue[0]
			s.follow(r, queue[0], c, ends)
			return true
		})
		left = slices.DeleteFunc(left, func(o *counter) bool { return taken[o] })
	}
	for i := range all {
		switch c := &all[i]; {
		case !slices.Contains(open, c):
		case c.strict && took[&all[i+1]] != nil: // its ceiling replaces a hard limit
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

// harden attaches the nominal limit o to the hard limit that replaces its ceiling. A bucket for the
// ceiling drains faster and remembers less, and during an outage an instance may only know o.
func (s *succession) harden(r *account, o, ceiling *counter, all []counter, took map[*counter]*counter, ends lives) {
	for i := range all {
		if took[&all[i]] == ceiling {
			s.attach(r, o, &all[i], ends)
		}
	}
}

// follow makes c replace o.
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
	if o.limit.Identity() == c.limit.Identity() && o.anchored == c.anchored { // it continues
		was := o.each()
		for i, l := range c.each() {
			s.inherit(l, was[i])
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
		s.inherit(l, was)
		s.before.attach(l, was, s.now.Add(lasts))
	}
}

// inherit attaches the predecessors of was that still count to the limit that has taken its place.
func (s *succession) inherit(successor, was *tidegate.Limit) {
	if s.had == nil {
		return
	}
	for _, p := range s.had.of[was.Identity()] {
		if s.now.Before(p.until) {
			s.before.attach(successor, p.replacedBy(was), p.until)
		}
	}
}

// tell adds a change of c, once for all branches and scopes.
func (s *succession) tell(r *account, c *counter, was, why string, lasts time.Duration) {
	_, part, _ := strings.Cut(c.limit.Scope, "#")
	change := Change{Rule: r.Rule, Part: part, Limit: c.text(), Was: was, For: lasts, Why: why}
	if !s.told[change] {
		s.told[change] = true
		s.changes = append(s.changes, change)
	}
}

// lives has for how long counters of a rule remember, by identity: old for those before, fresh for
// those that replace them.
type lives struct{ old, fresh map[string]time.Duration }

// of returns for how long requests are also held to o: as long as both counters would remember.
func (l lives) of(o, c *counter) time.Duration {
	return min(l.old[o.limit.Identity()], l.fresh[c.limit.Identity()])
}

// planLike returns the plan of a that the n-th plan of other replaces: for a branch, the one with
// the same conditions, or else at the same position. by has the branches of a by conditions.
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

// branches returns the plans of the rule's branches, by conditions.
func (a *account) branches() map[string]*counters {
	by := make(map[string]*counters, len(a.Plans))
	for i := len(a.Plans) - 1; i > 0; i-- {
		by[a.Plans[i].Conditions] = &a.Plans[i]
	}
	return by
}
