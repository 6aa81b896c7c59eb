package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func exemptTooWide(p *pass) {
	for i := range p.file.Exempt {
		e := &p.file.Exempt[i]
		wide := slices.ContainsFunc(shapes(e.Match), shape.everything)
		if wide && unconditional(e) {
			p.fail(e.Pos, "this exempts every request, so no limit applies to anybody", "narrow its `match`, add a `when`, or remove it")
			continue
		}
		c := p.claim(whenUnless{e.When, e.Unless}, writes)
		if c.effort == cannot {
			continue
		}
		severity := c.severity()
		if !wide {
			severity = diag.Warning
		}
		p.report(c.name.Pos, severity, "no limit applies to a caller that "+c.deed+c.andSo(),
			"exempt what callers cannot choose: `ip: in LIST`, a verified claim, or a `match` alone")
	}
}

func unconditional(e *rulefile.Exempt) bool { return len(e.When) == 0 && len(e.Unless) == 0 }

// alwaysExempt reports whether r never applies because all its requests are exempt.
func (p *pass) alwaysExempt(r *rulefile.Rule) bool {
	return !r.Deny && slices.ContainsFunc(p.file.Exempt, func(e rulefile.Exempt) bool {
		p.step(1 + len(e.Match))
		return unconditional(&e) && p.allContain(shapes(e.Match), p.shapes[r])
	})
}
