package lint

import (
	"regexp"
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

// folder matches a last segment that is usually requested with something below it.
var folder = regexp.MustCompile(`^(api|apis|rest|v[0-9]+|admin|internal|private|static|assets)$`)

func noSubtree(p *pass) {
	for _, r := range p.file.Rules {
		p.subtrees(r.Match, r.Deny)
	}
	for _, c := range p.file.Classes {
		p.subtrees(c.Match, false)
	}
	for _, e := range p.file.Exempt {
		p.subtrees(e.Match, false)
	}
}

func (p *pass) subtrees(match []rulefile.Pattern, deny bool) {
	every := shapes(match)
	for i, m := range match {
		s := every[i]
		p.step(len(every))
		if s.below || len(s.segments) == 0 || m.Path[len(m.Path)-1] == '}' {
			continue
		}
		all := s
		all.below = true
		if slices.ContainsFunc(every, func(o shape) bool { return o.below && o.overlaps(s) }) {
			continue // another pattern has what is below
		}
		last := s.segments[len(s.segments)-1].literal
		if folder.MatchString(last) || deny && s.method == "" && p.patternBelow(s, all) {
			p.warn(m.Pos, diag.Quote(m.Text)+" matches that one path, and not the paths below it",
				"write "+diag.Quote(m.Text+"/")+" for the path and all below, or "+diag.Quote(m.Text+"/{$}")+" to say that it alone is meant")
		}
	}
}

// patternBelow reports whether a rule of the file has a pattern within all but outside s.
func (p *pass) patternBelow(s, all shape) bool {
	return slices.ContainsFunc(p.file.Rules, func(r *rulefile.Rule) bool {
		p.step(1 + len(p.shapes[r]))
		return slices.ContainsFunc(p.shapes[r], func(o shape) bool { return len(o.segments) > len(s.segments) && all.overlaps(o) })
	})
}
