package lint

import (
	"fmt"

	"tidegate.dev/tidegate/internal/lang/diag"
)

func unusedWaiver(p *pass) {
	for _, own := range []bool{false, true} { // waivers of other checks first: they decide whether a waiver of this check silences anything
		for _, w := range p.waivers {
			if (w.Check.Text == p.check) == own {
				p.reportUnused(w)
			}
		}
	}
}

// reportUnused reports a waiver that silences nothing, unless its check has not looked at
// everything.
func (p *pass) reportUnused(w *waiver) {
	check := w.Check.Text
	if w.used || !p.done[check] && check != p.check {
		return
	}
	where := "the rule " + diag.Quote(w.Rule)
	if w.Rule == "" {
		where = "the file"
	}
	hint := "remove it"
	if pos, ok := p.open[check]; ok {
		hint = fmt.Sprintf("remove it, or move it to what is found at %s:%d", pos.File, pos.Line)
	}
	p.warn(w.Check.Pos, diag.Quote(check)+" finds nothing in "+where+", so this waiver silences nothing", hint)
}
