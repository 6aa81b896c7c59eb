package lint

import "tidegate.dev/tidegate/internal/lang/domainfile"

func domainExemptValue(p *pass) {
	p.levels(func(_ *domainfile.Domain, _, beside []*domainfile.Descriptor) {
		for _, d := range beside {
			if d.Limit != nil {
				continue
			}
			p.step(len(beside))
			other := otherwise(d, beside)
			if other == nil || other.Limit == nil || other.Limit.Unlimited {
				continue
			}
			p.warn(d.Value.Pos, entry(d)+" has no limit, so that the limit of "+entry(other)+" does not hold for it either",
				"if it is meant to be exempt, write `rate_limit: { unlimited: true }`; otherwise give it a limit")
		}
	})
}
