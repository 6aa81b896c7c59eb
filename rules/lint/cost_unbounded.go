package lint

import (
	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func costUnbounded(p *pass) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		if c := t.Cost; c != nil && reservedBy(c, writes) != "" && !bounded(c) {
			p.warn(c.ReservePos, diag.Quote(r.Name.Text)+" reserves whatever the caller writes in "+diag.Quote(reservedBy(c, writes))+": one request can take the whole limit",
				"add `max`, the most that one request can really cost")
		}
	})
}

// bounded reports whether the file sets a maximum for what a request can reserve.
func bounded(c *rulefile.Cost) bool { return c.Max < tidegate.MaxCount }
