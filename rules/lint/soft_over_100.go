package lint

import (
	"fmt"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func softOver100(p *pass) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		if t.Over != nil && t.Over.Soft > 100 {
			p.warn(t.Over.Pos, fmt.Sprintf("with `soft: %d%%`, %s admits more than twice what it says", t.Over.Soft, diag.Quote(r.Name.Text)),
				"write what is above the limit, not the whole: `soft: 10%` admits 110 of 100")
		}
	})
}
