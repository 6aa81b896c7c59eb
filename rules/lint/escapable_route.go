package lint

import (
	"strings"
)

func escapableRoute(p *pass) {
	told := make(map[string]bool)
	for _, r := range p.file.Rules {
		if !enforced(r) || r.Deny || p.alwaysExempt(r) {
			continue
		}
		for _, rt := range p.routes(r) {
			e := p.wayOut(rt)
			if e == nil || told[rt.pattern.Text] {
				continue
			}
			told[rt.pattern.Text] = true
			p.escaped = append(p.escaped, e)
			pos := rt.pattern.Pos
			if rt.pattern.Text == "" {
				pos = r.PerPos
			}
			p.fail(pos, "every limit on "+rt.label()+" can be escaped: "+e.reasons(),
				"add a rule for "+rt.written()+" that counts `per: ip`, or per a verified identity without `missing: skip`")
		}
	}
}

// wayOut finds a way to request rt, which is limited for some callers, without any limit that
// counts what the caller cannot choose; nil if there is none.
func (p *pass) wayOut(rt *route) *escape {
	e, ok := p.escapes[rt]
	if !ok {
		e = p.escape(rt, func(all []meeting) bool { return !has(all, shares) && !has(all, counts) })
		p.escapes[rt] = e
	}
	return e
}

// reasons returns how the rules on the route are escaped.
func (e *escape) reasons() string {
	var all []string
	for _, m := range e.meetings {
		if m.why != "" {
			all = append(all, m.why)
		}
	}
	return strings.Join(all, "; ")
}
