package rules

import (
	"slices"
	"strings"
	"time"

	"tidegate.dev/tidegate"
)

// succession finds, for the limits of a Set, those of another one in whose place they are.
type succession struct {
	now     time.Time
	had     *predecessors // of the limits before
	before  predecessors
	changes []Change
	told    map[Change]bool
}

// newSuccession compares the limits of each rule by where they stand: in the rule itself, or
// in a branch.
func newSuccession(old, set *Set, had *predecessors, now time.Time) *succession {
	s := &succession{now: now, had: had, told: make(map[Change]bool)}
	was := make(map[string]*rule, len(old.rules))
	for _, r := range old.rules {
		was[r.name] = r
	}
	for _, r := range set.rules {
		s.rule(was[r.name], r)
	}
	return s
}

func (s *succession) rule(old, r *rule) {
	if old == nil || len(old.plans) == 0 {
		for i := range r.subject.scopes {
			s.fresh(r, i, "the rule is new, or counted nothing")
		}
		return
	}
	ends, branches := lives{old.times(life), r.times(func(l *tidegate.Limit, _ time.Duration) time.Duration { return lookback(l) })}, old.branches()
	for i, scope := range r.subject.scopes {
		j := slices.Index(old.subject.scopes, scope)
		if j < 0 {
			s.fresh(r, i, "`per` has changed")
			continue
		}
		for n := range r.plans {
			s.pair(r, old.planLike(r, n, branches).counters(j), r.plans[n].counters(i), ends)
		}
		s.pair(r, old.blockCounter(j), r.blockCounter(i), ends)
	}
}

// fresh tells of limits that have nothing before them.
func (s *succession) fresh(r *rule, i int, why string) {
	for n := range r.plans {
		all := r.plans[n].counters(i)
		for j := range all {
			s.tell(r, &all[j], "", why, 0)
		}
	}
}

// pair attaches each limit to the one in whose place it is: of those that stand for the
// same and count the same caller, the one of the same period, else the next in order.
func (s *succession) pair(r *rule, old, all []counter, ends lives) {
	open := make([]*counter, len(all))
	for i := range all {
		open[i] = &all[i]
	}
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
			taken[queue[0]] = true
			s.follow(r, queue[0], c, ends)
			return true
		})
		left = slices.DeleteFunc(left, func(o *counter) bool { return taken[o] })
	}
	for _, c := range open {
		s.tell(r, c, "", "there was no such limit in its place", 0)
	}
}

// follow attaches o to c.
func (s *succession) follow(r *rule, o, c *counter, ends lives) {
	if o.limit.Identity() == c.limit.Identity() { // it goes on
		for _, l := range c.each() {
			s.inherit(l.Identity(), l.Identity())
		}
		return
	}
	if o.anchored() && !c.anchored() {
		s.tell(r, c, o.text(), "the quota before it started on a day of each caller", 0)
		return
	}
	lasts := ends.of(o, c)
	s.tell(r, c, o.text(), "", lasts)
	for i, l := range c.each() {
		was := o.limit
		if o.anchored() {
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
func (s *succession) tell(r *rule, c *counter, was, why string, lasts time.Duration) {
	_, part, _ := strings.Cut(c.limit.Scope, "#")
	change := Change{Rule: r.name, Part: part, Limit: c.text(), Was: was, For: lasts, Why: why}
	if !s.told[change] {
		s.told[change] = true
		s.changes = append(s.changes, change)
	}
}

// planLike is the plan of r that the n-th of other takes the place of: of a branch the one
// with the same conditions, or in the same place. by is the branches of r by conditions.
func (r *rule) planLike(other *rule, n int, by map[string]*plan) *plan {
	if n == 0 {
		return &r.plans[0]
	}
	if p := by[other.plans[n].guard.text()]; p != nil {
		return p
	}
	if n < len(r.plans) {
		return &r.plans[n]
	}
	return &r.plans[0]
}

// branches are the plans of the rule's branches, by their conditions.
func (r *rule) branches() map[string]*plan {
	by := make(map[string]*plan, len(r.plans))
	for i := len(r.plans) - 1; i > 0; i-- {
		by[r.plans[i].guard.text()] = &r.plans[i]
	}
	return by
}

// text is the guard as it was written.
func (g *guard) text() string {
	var b strings.Builder
	for _, all := range []conditions{g.when, g.unless} {
		for i := range all {
			b.WriteString(all[i].id.name + ": " + all[i].text() + "\n")
		}
		b.WriteString("unless\n")
	}
	return b.String()
}

// counter is where a limit of a plan counts.
type counter struct {
	limit *tidegate.Limit
	vary  *vary // nil: that is all
}

func (c *counter) text() string { return strings.TrimPrefix(c.limit.String(), c.limit.Name+": ") }

// class is what a limit counts: which caller, places or events, for the limit itself or for
// what is beside it.
func (c *counter) class() string {
	if c.limit.Algorithm == tidegate.Concurrency {
		return "slots " + c.limit.Scope
	}
	return "events " + c.limit.Scope
}

// anchored reports whether it is a quota that starts on a day of who is asking.
func (c *counter) anchored() bool { return c.vary != nil && !c.vary.clamp }

// each is the limits of all identities.
func (c *counter) each() []*tidegate.Limit {
	all := []*tidegate.Limit{c.limit}
	if c.anchored() {
		nominal := c.vary.otherwise.nominal == c.limit
		for day := range c.vary.most {
			h := c.vary.get(day + 1)
			if nominal {
				all = append(all, h.nominal)
			} else {
				all = append(all, h.limit)
			}
		}
	}
	return all
}

// counters are those of the plan, for one combination of the subject.
func (p *plan) counters(scope int) []counter {
	by := p.decides
	if by == nil {
		by = p.tries
	}
	var all []counter
	if scope >= len(by) { // the rule is disabled
		return nil
	}
	for i := range by[scope] {
		it := &by[scope][i]
		h := it.some()
		if h.nominal != nil {
			all = append(all, counter{h.nominal, it.vary})
		}
		all = append(all, counter{h.limit, it.vary})
	}
	return all
}

func (r *rule) blockCounter(scope int) []counter {
	if scope >= len(r.blocks) || r.blocks[scope] == nil {
		return nil
	}
	return []counter{{limit: r.blocks[scope]}}
}

// lives is for how long counters of a rule remember, by identity: old is of those before,
// fresh of those in their place.
type lives struct{ old, fresh map[string]time.Duration }

// of is how long requests are held to o beside c: as long as both would count what was used.
func (l lives) of(o, c *counter) time.Duration {
	return min(l.old[o.limit.Identity()], l.fresh[c.limit.Identity()])
}

// times is a time of each counter of the rule, by identity: the longest of all limits that
// share it.
func (r *rule) times(of func(l *tidegate.Limit, maxWait time.Duration) time.Duration) map[string]time.Duration {
	times := make(map[string]time.Duration)
	add := func(l *tidegate.Limit, maxWait time.Duration) {
		if l != nil {
			times[l.Identity()] = max(times[l.Identity()], of(l, maxWait))
		}
	}
	for i := range r.plans {
		for _, by := range [][][]item{r.plans[i].decides, r.plans[i].tries} {
			for _, items := range by {
				for j := range items {
					it := &items[j]
					all := []*held{it.some()}
					if it.vary != nil {
						all = append(all, it.vary.get(1), it.vary.get(it.vary.most))
					}
					for _, h := range all {
						add(h.nominal, h.maxWait)
						add(h.limit, h.maxWait)
					}
				}
			}
		}
	}
	for _, l := range r.blocks {
		add(l, 0)
	}
	return times
}
