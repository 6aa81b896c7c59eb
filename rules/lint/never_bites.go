package lint

import (
	"fmt"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/lang/diag"
)

func neverBites(p *pass) {
	for _, r := range p.file.Rules {
		told := make(map[diag.Pos]bool)
		p.pairs(r, func(a, b knownLimit) {
			if a.period > b.period || told[b.Pos] {
				return
			}
			told[b.Pos] = true
			if b.Spec.Algorithm == tidegate.TokenBucket {
				p.warn(b.Pos, b.label()+" never refuses anybody: "+a.label()+" is not faster and has no larger burst", "remove it, or give it a smaller burst or a slower rate")
				return
			}
			n := float64(a.Spec.Events) * float64(b.period/a.period)
			if !aligned(a.Spec, b.Spec) {
				n = most(a.Spec, b.period)
			}
			p.warn(b.Pos, fmt.Sprintf("%s never refuses anybody: %s admits no more than %.0f in that time", b.label(), a.label(), n),
				fmt.Sprintf("remove it, or make it fewer than %.0f", n))
		})
	}
}
