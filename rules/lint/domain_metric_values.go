package lint

import (
	"strconv"

	"tidegate.dev/tidegate/internal/lang/domainfile"
	"tidegate.dev/tidegate/rules/envoy"
)

func domainMetricValues(p *pass) {
	p.descriptors(func(_ *domainfile.Domain, path []*domainfile.Descriptor, d *domainfile.Descriptor) {
		field := "value_to_metric"
		open := d.Metric && anyValue(d)
		if d.Detailed && d.Limit != nil {
			field = "detailed_metric"
			open = anyValue(d)
			for _, above := range path {
				open = open || anyValue(above)
			}
		}
		if open {
			p.warn(d.Key.Pos, "`"+field+"` makes a metric for each value of "+entry(d)+" that somebody sends",
				"use it where a few values are possible: after "+strconv.Itoa(envoy.MaxMetrics)+" names in a domain, the others are counted under the name without values")
		}
	})
}

// anyValue reports whether d matches values that are not in the file, each with a name of its
// own.
func anyValue(d *domainfile.Descriptor) bool {
	return d.Value.Text == "" || d.HasStar() && !d.Shared
}
