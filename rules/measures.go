package rules

import (
	"maps"
	"slices"

	"tidegate.dev/tidegate"
)

// ordered has all measures that were set.
type ordered struct {
	all      []Measure
	problems []MeasureProblem // of those that are not in force under the current rules
}

// SetMeasures replaces all measures. A request sees either the old or the new ones as a whole. It
// returns the problems of measures that cannot be in force under the current rules, for example
// because their rule is gone; all others are. Measures stay when the Set is replaced, and those
// that are valid for the new one are in force. They end by the clock of the rules, at Until.
func (l *Live) SetMeasures(all []Measure) []MeasureProblem {
	o := &ordered{all: make([]Measure, len(all))}
	for i := range all {
		o.all[i] = *all[i].clone()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.force.Load()
	next := &force{set: f.set, before: f.before}
	next.order(o, f.measures)
	l.force.Store(next)
	return next.problems()
}

// order compiles measures for the Set of f. before are the measures that were in force until now.
func (f *force) order(o *ordered, before *measures) {
	if o == nil || len(o.all) == 0 {
		return
	}
	f.ordered = &ordered{all: o.all}
	f.measures, f.ordered.problems = compileMeasures(f.set, o.all, f.set.config.now(), before)
}

func (f *force) problems() []MeasureProblem {
	if f.ordered == nil {
		return nil
	}
	return slices.Clone(f.ordered.problems)
}

// Measures returns the measures that were set and have not ended, and the problems of those that
// are not in force under the current rules.
func (l *Live) Measures() ([]Measure, []MeasureProblem) {
	f := l.force.Load()
	if f.ordered == nil {
		return nil, nil
	}
	now := f.set.config.now()
	var all []Measure
	for i := range f.ordered.all {
		if m := &f.ordered.all[i]; !m.Ended(now) {
			all = append(all, *m.clone())
		}
	}
	return all, f.problems()
}

func (m *Measure) clone() *Measure {
	other := *m
	other.As, other.Limits = maps.Clone(m.As), slices.Clone(m.Limits)
	return &other
}

// matchMeasured is matchRules with measures. A banned request is held to its ban alone.
func (st *state) matchMeasured(dst []tidegate.Check) []tidegate.Check {
	for way := range st.readings {
		st.turnTo(way)
		if ban := st.measures.bans.find(st, nil); ban != nil {
			return append(dst, ban.check())
		}
	}
	if len(st.readings) > 1 {
		st.turnBack()
	}
	first := len(dst)
	dst = st.matchRules(dst)
	if st.ban != nil {
		clear(dst[first:])
		dst = append(dst[:first], st.ban.check())
	}
	return dst
}

// turnBack returns to the first reading of the path.
func (st *state) turnBack() {
	st.turnTo(1)
	st.way = 0
}

// check returns the check of a ban.
func (o *order) check() tidegate.Check {
	return tidegate.Check{Key: o.key, Limit: o.limit, Cost: 1}
}

// lookForBan looks for a ban that names the rule of h and matches the request. A ban also refuses
// requests to which the rule does not apply because they are exempt or lack an identity.
func (st *state) lookForBan(h *hit) {
	switch h.status {
	case applies, refuses, exempted, skipped:
	default:
		return
	}
	if m := st.measures.rules[h.entry]; m != nil {
		if o := m.bans.find(st, h); o != nil && (st.ban == nil || o.rank < st.ban.rank) {
			st.ban = o
		}
	}
}

// banned returns the ban that applies; nil if there is none.
func (st *state) banned() *order {
	if st.measures == nil {
		return nil
	}
	if o := st.measures.bans.find(st, nil); o != nil {
		return o
	}
	return st.ban
}

// plan returns the plan that a rule has for the request, and the override that it comes from; nil
// means the rule itself.
func (st *state) plan(h *hit, r *rule) (*plan, *order) {
	p := r.plan(st, h)
	if st.measures == nil {
		return p, nil
	}
	m := st.measures.rules[h.entry]
	if m == nil {
		return p, nil
	}
	o := m.overrides.find(st, h)
	if o == nil {
		return p, nil
	}
	return o.variant.plan(p), o
}
