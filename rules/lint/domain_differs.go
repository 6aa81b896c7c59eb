package lint

import (
	"strings"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/domainfile"
)

func domainDiffers(p *pass) {
	p.descriptors(func(_ *domainfile.Domain, _ []*domainfile.Descriptor, d *domainfile.Descriptor) {
		if star := strings.IndexByte(d.Value.Text, '*'); star >= 0 && star < len(d.Value.Text)-1 {
			p.warn(d.Value.Pos, "versions of envoyproxy/ratelimit before 2026 take the star in "+entry(d)+" for a letter, unless it is the last one",
				"while such a version decides as well, they disagree: update it, or end the value with the only star")
		}
		l := d.Limit
		if l == nil || l.Unlimited {
			return
		}
		if l.Unit == "week" {
			p.warn(l.RequestsPos, "a week begins on Monday here, and on Thursday in envoyproxy/ratelimit",
				"while both decide, they disagree about the rest of the week; once only Tidegate decides, there is nothing to do")
		}
		if l.Requests > tidegate.MaxCount && l.Own.Algorithm == tidegate.Auto {
			p.warn(l.RequestsPos, "the limit of "+entry(d)+" is more than a window counts, so that the "+l.Unit+" is divided, and each part has its share",
				"write a limit per shorter unit, if requests come in bursts")
		}
	})
}
