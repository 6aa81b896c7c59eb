package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func oneTakesAll(p *pass) {
	for _, r := range p.file.Rules {
		if !enforced(r) || r.Deny || !p.sharedByAll(r) || p.alwaysExempt(r) {
			continue
		}
		beside := slices.ContainsFunc(p.file.Rules, func(o *rulefile.Rule) bool {
			p.step(1)
			return enforced(o) && !o.Deny && !p.sharedByAll(o) && (p.allContain(p.shapes[o], p.shapes[r]) || len(r.Match) == 0)
		})
		if !beside {
			p.warn(r.PerPos, diag.Quote(r.Name.Text)+" is one limit for all callers, and beside it none for each: one caller can use it up and shut out the others",
				"add a rule for the same requests that counts `per: ip` or per user")
		}
	}
}

// sharedByAll reports whether all callers share one counter, or a few, of r.
func (p *pass) sharedByAll(r *rulefile.Rule) bool {
	return len(r.Per) > 0 && all(r.Per, func(per rulefile.Word) bool {
		return r.Finite(per.Text) != nil || all(p.sources(per.Text), shared)
	})
}
