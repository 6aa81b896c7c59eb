package lint

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// effect is what a rule does to the requests of a route in a scenario.
type effect uint8

const (
	away    effect = iota // it does not apply
	lets                  // it applies and limits nothing
	invents               // it counts by a value that the caller invented
	shares                // it counts the caller together with all others
	counts                // it counts the caller
	refuses               // it refuses every caller
)

// meeting is a rule applied to a route in a scenario.
type meeting struct {
	rule *rulefile.Rule
	is   effect
	why  string // for away, lets and invents: how the caller escapes, as a clause
	// replaced: it would apply if another rule did not replace it.
	replaced bool
}

// limits reports whether the rule limits the caller in any way.
func (m meeting) limits() bool { return m.is == invents || m.is == shares || m.is == counts }

// enforced reports whether r decides about requests.
func enforced(r *rulefile.Rule) bool { return r.Mode == rulefile.Enforce }

// limits reports whether t limits requests.
func limits(t rulefile.Terms) bool {
	return t.Limits != nil && !t.Limits.Unlimited || t.Quota != nil || t.Concurrency != nil
}

// limited reports whether r has a limit for requests in w. A caller that knows the value that the
// rule asks for need not know that of a branch, unless both are the same.
func (p *pass) limited(r *rulefile.Rule, a at, w scenario) bool {
	ordinary := w
	ordinary.known = false
	for i := range r.For {
		b := &r.For[i]
		if p.never(whenUnless{b.When, b.Unless}, whenUnless{r.When, r.Unless}) {
			continue
		}
		same := w.known && len(b.Unless) == 0 && p.implies(r.When, b.When)
		if same || p.holds(b.When, b.Unless, a, ordinary) {
			return limits(r.Under(b))
		}
		if w.known && p.holds(b.When, b.Unless, a, w) && limits(r.Under(b)) {
			return true
		}
	}
	return limits(r.Terms)
}

// meet returns what r does to the requests of a in w.
func (p *pass) meet(r *rulefile.Rule, a at, w scenario) meeting {
	p.step(2 + len(r.For))
	m := meeting{rule: r}
	name := diag.Quote(r.Name.Text)
	switch {
	case !p.holds(r.When, r.Unless, a, w):
		m.why = name + p.whyNot(r, a, w)
	case r.Deny:
		m.is = refuses
	default:
		m.is, m.why = p.subject(r, a, w)
		if m.limits() && !p.limited(r, a, w) {
			m.is, m.why = lets, name+" is unlimited then"
		}
	}
	return m
}

// whyNot completes a clause that begins with the name of r: why its conditions do not hold.
func (p *pass) whyNot(r *rulefile.Rule, a at, w scenario) string {
	for _, c := range r.When {
		name := diag.Quote(c.Name.Text)
		switch {
		case p.one(c, a, w):
		case wantsAbsent(&c):
			return " holds only without " + name + ", and the caller can send one"
		case !namesValues(c):
			return " holds only with " + name + ", which the caller can leave out"
		default:
			return " holds only for certain values of " + name + ", and the caller can send another, or none"
		}
	}
	var names []string
	for _, c := range r.Unless {
		names = append(names, diag.Quote(c.Name.Text))
	}
	return " does not hold because of its `unless`, about " + strings.Join(names, " and ")
}

// subject returns how r counts the caller.
func (p *pass) subject(r *rulefile.Rule, a at, w scenario) (effect, string) {
	is := shares
	var made []string
	for _, per := range r.Per {
		s, found := p.find(per.Text, a, w)
		if r.Finite(per.Text) != nil && (found || !r.HasMissing || r.Missing == rulefile.MissingIP) {
			continue // it has a few fixed values, so it cannot be invented and does not identify the caller
		}
		if !found {
			switch p.missing(r, per.Text) {
			case rulefile.MissingSkip:
				return away, fmt.Sprintf("%s skips requests without %s", diag.Quote(r.Name.Text), diag.Quote(per.Text))
			case rulefile.MissingRefuse:
				return refuses, ""
			}
			is = counts
			continue
		}
		switch g := controlOf(s, a.route); {
		case a.pins(s):
		case g == claimed || g == chosen:
			made = append(made, diag.Quote(per.Text))
		case !shared(s):
			is = counts
		}
	}
	if len(made) > 0 {
		return invents, fmt.Sprintf("%s counts per %s, which the caller can invent", diag.Quote(r.Name.Text), strings.Join(made, " and "))
	}
	return is, ""
}

// missing returns what r does without a value for name: what it says, or skip if only callers of
// the check API send it.
func (p *pass) missing(r *rulefile.Rule, name string) rulefile.Missing {
	if r.HasMissing {
		return r.Missing
	}
	for _, s := range p.sources(name) {
		if s.Kind != rulefile.SourceDescriptor {
			return rulefile.MissingIP
		}
	}
	return rulefile.MissingSkip
}

// meetings returns what the rules on a route do in w, after those that replace others are settled.
func (p *pass) meetings(rt *route, w scenario) []meeting {
	all := make([]meeting, 0, len(rt.rules))
	replaced := false
	for _, r := range rt.rules {
		a, _ := p.seen(r, rt)
		all = append(all, p.meet(r, a, w))
		replaced = replaced || len(r.InsteadOf) > 0
	}
	if replaced {
		settled := make([]bool, len(all))
		for i := range all {
			p.replace(all, i, settled)
		}
	}
	return all
}

// replace marks all[i] as replaced if a rule that is written instead of it holds, even if that one
// is replaced itself: this is how rules are applied.
func (p *pass) replace(all []meeting, i int, settled []bool) {
	if settled[i] {
		return
	}
	settled[i] = true
	for j := range all {
		p.step(1 + len(all[j].rule.InsteadOf))
		if all[i].is == away || !replaces(all[j].rule, all[i].rule) {
			continue
		}
		if p.replace(all, j, settled); all[j].is != away || all[j].replaced {
			all[i].is, all[i].replaced = away, true
			all[i].why = diag.Quote(all[j].rule.Name.Text) + " takes the place of " + diag.Quote(all[i].rule.Name.Text)
		}
	}
}

// has reports whether one of all has that effect.
func has(all []meeting, is effect) bool {
	return slices.ContainsFunc(all, func(m meeting) bool { return m.is == is })
}
