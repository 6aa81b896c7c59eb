package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainNoEffect(p *pass) {
	p.levels(func(_ *domainfile.Domain, _, beside []*domainfile.Descriptor) {
		for _, d := range beside {
			p.step(len(beside))
			switch {
			case d.Limit != nil:
				p.flagsOfUnlimited(d)
			case d.Empty != (diag.Pos{}):
				p.warn(d.Empty, "nothing is written below `rate_limit`, so that "+entry(d)+" is not limited", "write `unit` and `requests_per_unit` below it, two spaces further in")
			case d.Shadow:
				p.warn(d.ShadowPos, "`shadow_mode` is of a limit, and "+entry(d)+" has none", "put it beside the `rate_limit` that it is for: it does not hold for what is below")
			case d.Quota:
				p.warn(d.QuotaPos, "`quota_mode` is of a limit, and "+entry(d)+" has none", "put it beside the `rate_limit` that it is for: it does not hold for what is below")
			case len(d.Descriptors) == 0 && otherwise(d, beside) == nil:
				p.warn(d.Key.Pos, entry(d)+" limits nothing: it has neither `rate_limit` nor `descriptors`", "give it a `rate_limit`, or remove it")
			}
		}
	})
}

// flagsOfUnlimited reports flags that have no effect because nothing is refused.
func (p *pass) flagsOfUnlimited(d *domainfile.Descriptor) {
	if !d.Limit.Unlimited {
		return
	}
	if d.Shadow {
		p.warn(d.ShadowPos, "`shadow_mode` means nothing to "+entry(d)+", which is unlimited", "remove one of them")
	}
	if d.Quota {
		p.warn(d.QuotaPos, "`quota_mode` means nothing to "+entry(d)+", which is unlimited", "remove one of them")
	}
}
