package lint

import "tidegate.dev/tidegate/internal/lang/diag"

func dayBelowHour(p *pass) {
	for _, r := range p.file.Rules {
		told := make(map[diag.Pos]bool)
		p.pairs(r, func(a, b knownLimit) {
			if a.period > b.period && !told[b.Pos] {
				told[b.Pos] = true
				p.warn(b.Pos, b.label()+" never refuses anybody: "+a.label()+" refuses earlier", "swap the numbers if they are reversed, or remove "+b.label())
			}
		})
	}
}
