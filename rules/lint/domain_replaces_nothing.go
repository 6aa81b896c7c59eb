package lint

import (
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainReplacesNothing(p *pass) {
	names := make(map[*domainfile.Domain]map[string]bool)
	p.descriptors(func(domain *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if names[domain] == nil {
			names[domain] = make(map[string]bool)
		}
		if d.Limit != nil && d.Limit.Name.Text != "" {
			names[domain][d.Limit.Name.Text] = true
		}
	})
	p.descriptors(func(domain *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if d.Limit == nil {
			return
		}
		for _, name := range d.Limit.Replaces {
			if names[domain][name.Text] {
				continue
			}
			p.warn(name.Pos, "no limit of the domain has the name "+diag.Quote(name.Text), nearName(name.Text, names[domain]))
		}
	})
}

func nearName(name string, known map[string]bool) string {
	var all []string
	for n := range known {
		all = append(all, n)
	}
	slices.Sort(all)
	if near := diag.Nearest(name, all); near != "" {
		return "did you mean " + diag.Quote(near) + "?"
	}
	return "give the limit that is to be replaced this name: `rate_limit: { name: " + name + " }`, or remove it here"
}
