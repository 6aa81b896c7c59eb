package rules

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// append adds the checks of a rule that was hit, if it applies.
func (st *state) append(dst []tidegate.Check, h *hit) []tidegate.Check {
	r := st.set.entries[h.entry].rule
	if st.measures != nil {
		st.lookForBan(h)
	}
	switch h.status {
	case refuses:
		return append(dst, tidegate.Check{Limit: r.refusal(h), Cost: 1, Advisory: h.try})
	case applies:
		if r.deny {
			return append(dst, tidegate.Check{Key: h.key, Limit: r.accessFor(h).deny, Cost: 1, Advisory: h.try})
		}
		first := len(dst)
		if r.shed != nil {
			c, shed := r.shed.check(st, r.shedKey(st, h), h.try)
			if shed {
				dst = append(dst, c)
			}
			if shed && !c.Advisory && !st.explains { // it is refused, whatever the limits say
				return dst
			}
		}
		p, _ := st.plan(h, r)
		dst = st.appendPlan(dst, h, p)
		if st.before != nil {
			dst = st.appendPredecessors(dst, first, r.leaves.of(st.class))
		}
	}
	return dst
}

// accessFor returns the limits of r that refuse without counting: those that decide or those that
// only try.
func (r *rule) accessFor(h *hit) *access {
	if h.try {
		return &r.tries
	}
	return &r.decides
}

func (r *rule) refusal(h *hit) *tidegate.Limit {
	for i := range r.subject.parts {
		if &r.subject.parts[i] == h.missing {
			return r.accessFor(h).refuse[i]
		}
	}
	return nil
}

func (st *state) appendPlan(dst []tidegate.Check, h *hit, p *plan) []tidegate.Check {
	r := st.set.entries[h.entry].rule
	items := p.tries
	if !h.try {
		items = p.decides
		// A caller without a limit is not blocked by an earlier refusal either.
		if p.blocks != nil && p.blocks[h.scope] != nil {
			dst = append(dst, tidegate.Check{Key: h.key, Limit: p.blocks[h.scope]})
		}
	}
	if len(items[h.scope]) == 0 {
		return dst
	}
	cost := p.cost.of(st, h, &r.clamped)
	room := p.elastic == nil || !st.request.Unattended && st.set.hasRoom(p)
	leave := r.leaves.of(st.class)
	estimate := p.cost.estimate || st.request.Estimate && p.cost.isRequests()
	for i := range items[h.scope] {
		it := &items[h.scope][i]
		held := &it.held
		if it.vary != nil {
			held = it.vary.of(st, h)
		}
		c := tidegate.Check{Key: h.key, Limit: held.limit, Cost: cost, Advisory: held.tries, Estimate: estimate}
		if held.slot {
			c.Cost, c.Estimate = 1, false
		}
		if leave > 0 {
			c.Floor = rulefile.Leave(c.Limit.Capacity(), leave)
		}
		if c.Unattended = st.request.Unattended; !c.Unattended {
			c.MaxWait = held.maxWait
		}
		if held.nominal != nil {
			dst = append(dst, held.under(c, room && !held.timed, leave))
		}
		dst = append(dst, c)
	}
	return dst
}

// under returns the check of the nominal limit below the ceiling of c. With room it only marks what
// is above it; otherwise it decides, and requests leave a share of it.
func (h *held) under(c tidegate.Check, room bool, leave int) tidegate.Check {
	if room { // what is above it is marked, whether or not it queues, and whatever is set aside
		c.Limit, c.Advisory, c.MaxWait, c.Floor = h.nominal, true, 0, 0
	} else if c.Limit = h.strict; leave > 0 {
		c.Floor = rulefile.Leave(c.Limit.Capacity(), leave)
	}
	return c
}

// hasRoom reports whether more than the nominal limit may pass.
func (s *Set) hasRoom(p *plan) bool {
	if s.config.Signals == nil {
		return false
	}
	if steady, ok := s.config.Signals.(Steady); ok {
		return steady.Below(p.elastic.Signal.Text, p.elastic.Below)
	}
	v, ok := s.config.Signals.Signal(p.elastic.Signal.Text)
	return ok && v < p.elastic.Below
}
