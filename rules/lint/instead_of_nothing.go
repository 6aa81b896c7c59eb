package lint

import (
	"tidegate.dev/tidegate/internal/diag"
	"tidegate.dev/tidegate/internal/rulefile"
)

func insteadOfNothing(p *pass) {
	for _, r := range p.file.Rules {
		for _, name := range r.InsteadOf {
			for _, o := range p.file.Rules {
				p.step(1)
				if o.Name.Text == name.Text && p.apart(r, o) {
					p.warn(name.Pos, diag.Quote(r.Name.Text)+" and "+diag.Quote(o.Name.Text)+" never hold for the same request, so that there is nothing to take the place of",
						"make their patterns meet (`/api/` holds for `/api` and all below, `/api` for itself alone), or take `instead_of` out")
				}
			}
		}
	}
}

// apart reports whether no request is held to both.
func (p *pass) apart(a, b *rulefile.Rule) bool {
	return !p.anyOverlap(p.shapes[a], p.shapes[b]) || p.never(guard{a.When, a.Unless}, guard{b.When, b.Unless})
}
