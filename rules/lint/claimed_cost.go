package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func claimedCost(p *pass) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		if c := t.Cost; c != nil && reservedBy(c, asserts) != "" && c.Settle == "" {
			p.warn(c.ReservePos, diag.Quote(r.Name.Text)+" charges what the caller writes in "+diag.Quote(reservedBy(c, asserts))+", and nothing corrects it: every request will cost the least",
				"settle it by what the request did cost (`settle: response.header.NAME` or `response.body.FIELD`), or reserve by what the upstream works from, such as `body.FIELD`")
		}
	})
}

// reservedBy names the first source of a cost for which says is true; "" if there is none.
func reservedBy(c *rulefile.Cost, says func(rulefile.Source) bool) string {
	for _, s := range c.Reserve {
		if says(s) {
			return s.Text
		}
	}
	return ""
}
