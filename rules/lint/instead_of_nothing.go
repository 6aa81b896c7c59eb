package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func insteadOfNothing(p *pass) {
	for _, r := range p.file.Rules {
		for _, name := range r.InsteadOf {
			for _, o := range p.file.Rules {
				p.step(1)
				if o.Name.Text == name.Text && p.apart(r, o) {
					p.warn(name.Pos, diag.Quote(r.Name.Text)+" and "+diag.Quote(o.Name.Text)+" never apply to the same request, so there is nothing to replace",
						"make their patterns overlap (`/api/` matches `/api` and everything below, `/api` only itself), or remove `instead_of`")
				}
			}
		}
	}
}

// apart reports whether no request can fall under both rules.
func (p *pass) apart(a, b *rulefile.Rule) bool {
	return !p.anyOverlap(p.shapes[a], p.shapes[b]) || p.never(whenUnless{a.When, a.Unless}, whenUnless{b.When, b.Unless})
}
