package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
)

func denyEverything(p *pass) {
	replaced := p.replaced()
	for _, r := range p.file.Rules {
		if r.Deny && enforced(r) && !replaced[r.Name.Text] && len(r.When) == 0 && len(r.Unless) == 0 && slices.ContainsFunc(p.shapes[r], shape.everything) {
			p.fail(r.Name.Pos, diag.Quote(r.Name.Text)+" refuses every request, those that `exempt` names and health checks as well",
				"add a `match`, or say who gets through: `unless: { ip: in LIST }`")
		}
	}
}
