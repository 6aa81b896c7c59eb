package lint

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func boundaryBurst(p *pass) {
	p.eachLimit(func(_ *rulefile.Rule, l rulefile.Limit) {
		if l.Spec.Algorithm == tidegate.FixedWindow {
			p.warn(l.Pos, fmt.Sprintf("a fixed window admits %d within a moment, half of them before the boundary and half after it", 2*l.Spec.Events),
				"remove `algorithm: fixed_window`, or `refill: at_once`: the default has no boundaries")
		}
	})
}

// eachLimit calls f with every limit of every rule and branch, except those of disabled rules.
func (p *pass) eachLimit(f func(*rulefile.Rule, rulefile.Limit)) {
	p.eachTerms(func(r *rulefile.Rule, t rulefile.Terms) {
		if t.Limits == nil {
			return
		}
		for _, l := range t.Limits.All {
			f(r, l)
		}
	})
}

// eachTerms calls f with the terms of every rule that is not disabled, and of each of its branches.
func (p *pass) eachTerms(f func(*rulefile.Rule, rulefile.Terms)) {
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled {
			continue
		}
		f(r, r.Terms)
		for _, b := range r.For {
			f(r, b.Terms)
		}
	}
}
