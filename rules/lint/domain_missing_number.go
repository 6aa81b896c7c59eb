package lint

import "tidegate.dev/tidegate/internal/lang/domainfile"

func domainMissingNumber(p *pass) {
	p.descriptors(func(_ *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if l := d.Limit; l != nil && l.Unit != "" && !l.HasRequests {
			p.fail(l.Pos, "the limit of "+entry(d)+" has no `requests_per_unit`, which means 0: every request is refused",
				"write `requests_per_unit: 100`, or `requests_per_unit: 0` if all are to be refused")
		}
	})
}
