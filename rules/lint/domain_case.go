package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainCase(p *pass) {
	type folded struct{ key, value string }
	p.levels(func(_ *domainfile.Domain, _, beside []*domainfile.Descriptor) {
		seen := make(map[folded]*domainfile.Descriptor)
		for _, d := range beside {
			f := folded{strings.ToLower(d.Key.Text), strings.ToLower(d.Value.Text)}
			other, ok := seen[f]
			if !ok {
				seen[f] = d
				continue
			}
			pos := d.Value.Pos
			if other.Key.Text != d.Key.Text {
				pos = d.Key.Pos
			}
			p.warn(pos, entry(d)+" and "+entry(other)+" differ only by case, and each has counters of its own",
				"write what Envoy sends; if it sends both, a client can choose between them")
		}
	})
}
