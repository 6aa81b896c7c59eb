package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func unusedList(p *pass) {
	used := make(map[string]bool)
	p.eachCondition(func(c rulefile.Condition) {
		for _, t := range c.Any {
			if t.Kind == rulefile.TestIn {
				used[t.Text] = true
			}
		}
	})
	for _, l := range p.file.Lists {
		if !used[l.Name.Text] {
			p.warn(l.Name.Pos, "no condition uses the list "+diag.Quote(l.Name.Text), "use it, as in `when: { ip: in "+l.Name.Text+" }`, or remove it")
		}
	}
}
