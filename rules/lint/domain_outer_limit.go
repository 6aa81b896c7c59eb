package lint

import "tidegate.dev/tidegate/internal/lang/domainfile"

func domainOuterLimit(p *pass) {
	p.descriptors(func(_ *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if d.Limit != nil && !d.Limit.Unlimited && len(d.Descriptors) > 0 {
			p.warn(d.Limit.Pos, "the limit of "+entry(d)+" does not hold for the descriptors below it: those that go deeper are not counted here",
				"if both are to hold, let Envoy send two descriptors, one of them with "+entry(d)+" alone")
		}
	})
}
