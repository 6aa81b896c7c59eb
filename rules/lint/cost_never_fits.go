package lint

import (
	"fmt"

	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func costNeverFits(p *pass) {
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled {
			continue
		}
		p.costFits(r.Terms)
		for i := range r.For {
			if b := &r.For[i]; b.Terms.Cost != nil || b.Terms.Limits != nil || b.Terms.Quota != nil {
				p.costFits(r.Under(b))
			}
		}
	}
}

// costFits compares the largest cost with the limits; the others are checked when the file is read.
func (p *pass) costFits(t rulefile.Terms) {
	c := t.Cost
	if c == nil || len(c.Reserve) == 0 || !bounded(c) {
		return
	}
	for _, l := range knownLimits(t) {
		spec := l.Spec
		if raised(t.Over) {
			spec = t.Over.Ceiling(spec)
		}
		if room := int64(capacity(spec)); c.Max > room {
			p.warn(c.Pos, fmt.Sprintf("a request may cost %d, and %s has room for %d: a request that costs more is always refused", c.Max, l.label(), room),
				fmt.Sprintf("write `max: %d`, which charges such a request the whole limit, or raise the limit or its burst", room))
			return
		}
	}
}
