package lint

import (
	"strings"

	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainStarInKey(p *pass) {
	p.descriptors(func(_ *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if strings.Contains(d.Key.Text, "*") {
			p.warn(d.Key.Pos, "the star in the key "+entry(d)+" matches only a star: patterns are for values",
				"write the key that Envoy sends, and the pattern as its `value`")
		}
	})
}
