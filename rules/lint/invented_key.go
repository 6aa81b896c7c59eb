package lint

import (
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// inventedKey warns of rules that count a value which callers can make up, where the only other rules
// are for all callers together.
func inventedKey(p *pass) {
	for _, r := range p.file.Rules {
		if !enforced(r) || r.Deny || p.alwaysExempt(r) {
			continue
		}
		if e := p.invented(r); e != nil && !slices.ContainsFunc(p.escaped, func(o *escape) bool { return o.involves(r) }) {
			p.warn(r.PerPos, e.how(r)+"; beside it there is only "+e.backstop()+", which one caller can use up",
				"add a rule for "+e.route.written()+" that counts `per: ip` or per a verified identity")
		}
	}
}

// invented finds a route on which r counts a value that the caller made up, a rule for all
// callers applies, and none counts this caller. nil means there is none.
func (p *pass) invented(r *rulefile.Rule) *escape {
	if !slices.ContainsFunc(r.Per, func(per rulefile.Word) bool { return p.canInvent(per.Text) }) {
		return nil
	}
	for _, rt := range p.routes(r) {
		e := p.escape(rt, func(all []meeting) bool {
			own := slices.ContainsFunc(all, func(m meeting) bool { return m.rule == r && m.is == invents })
			return own && has(all, shares) && !has(all, counts)
		})
		if e != nil {
			return e
		}
	}
	return nil
}

// canInvent reports whether a caller can invent a value of name.
func (p *pass) canInvent(name string) bool {
	return slices.ContainsFunc(p.sources(name), func(s rulefile.Source) bool {
		c := controlOf(s, &route{})
		return c == claimed || c == chosen
	})
}

// involves reports whether e escapes r.
func (e *escape) involves(r *rulefile.Rule) bool {
	return slices.ContainsFunc(e.meetings, func(m meeting) bool { return m.rule == r })
}

// how returns what the caller does to escape r.
func (e *escape) how(r *rulefile.Rule) string {
	i := slices.IndexFunc(e.meetings, func(m meeting) bool { return m.rule == r })
	return e.meetings[i].why
}

// backstop names the rules on the route that count all callers together.
func (e *escape) backstop() string {
	var names []string
	for _, m := range e.meetings {
		if m.is == shares {
			names = append(names, diag.Quote(m.rule.Name.Text))
		}
	}
	return strings.Join(names, " and ")
}
