package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainShadowReplaces(p *pass) {
	p.descriptors(func(_ *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if d.Limit == nil || len(d.Limit.Replaces) == 0 || !d.Shadow && !d.Limit.Unlimited {
			return
		}
		how := "in shadow mode"
		if d.Limit.Unlimited {
			how = "unlimited"
		}
		name := d.Limit.Replaces[0]
		p.warn(name.Pos, entry(d)+" is "+how+" and replaces "+diag.Quote(name.Text)+": a request with both is not limited at all",
			"take `replaces` out until the limit decides, or add it to the limits instead of replacing")
	})
}
