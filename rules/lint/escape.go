package lint

import "tidegate.dev/tidegate/internal/lang/rulefile"

// escape is a way to request a route that avoids the intended limits.
type escape struct {
	route    *route
	meetings []meeting // of the rules that could limit the caller, or do
}

// escape finds a scenario in which likes accepts what the rules on rt do; nil if there is none. It
// is no escape if the caller proves who it is and no rule counts an invented value: such callers
// are meant to pass.
func (p *pass) escape(rt *route, likes func([]meeting) bool) *escape {
	for _, w := range rt.scenarios {
		all := p.meetings(rt, w)
		if has(all, refuses) || !likes(all) || w.proves && !has(all, invents) {
			continue
		}
		e := &escape{route: rt}
		limited := false
		for _, m := range all {
			binds := p.binds(m.rule, rt)
			limited = limited || binds
			if m.replaced || binds {
				e.meetings = append(e.meetings, m)
			}
		}
		if !limited {
			return nil // no limit is meant for this route
		}
		return e
	}
	return nil
}

// binds reports whether r limits callers of rt in any scenario. If not, the rule was not made for
// them, and they do not escape it.
func (p *pass) binds(r *rulefile.Rule, rt *route) bool {
	a, _ := p.seen(r, rt)
	for _, w := range rt.scenarios {
		for _, w.known = range []bool{false, true} {
			if !p.meet(r, a, w).limits() {
				continue
			}
			for _, m := range p.meetings(rt, w) {
				if m.rule == r && m.limits() {
					return true
				}
			}
		}
	}
	return false
}
