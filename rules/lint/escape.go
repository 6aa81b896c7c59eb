package lint

import "tidegate.dev/tidegate/internal/lang/rulefile"

// escape is a way to ask for a route without being held back as meant.
type escape struct {
	route    *route
	meetings []meeting // of the rules that could hold the caller, or do
}

// escape finds a scenario in which what the rules on rt do is to the caller's liking;
// nil when there is none. A scenario in which the caller proves who it is and nothing
// at all holds for it is no escape: it was let off.
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
			return nil // nobody was meant to be
		}
		return e
	}
	return nil
}

// binds reports whether r limits callers of rt in some scenario at all. Where it does
// not, it was not made for them, and they do not escape it.
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
