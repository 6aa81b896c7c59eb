package lint

import (
	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func unusedIdentity(p *pass) {
	used := make(map[string]bool)
	for _, r := range p.whole.Rules {
		for _, name := range namesOf(r) {
			used[name] = true
		}
		for _, f := range r.Known {
			used[f.Name] = true
		}
	}
	p.eachCondition(func(c rulefile.Condition) { used[c.Name.Text] = true })
	for _, id := range p.file.Identify {
		if !used[id.Name.Text] {
			p.warn(id.Name.Pos, "nothing is counted by "+diag.Quote(id.Name.Text)+", and no condition uses it", "use it in `per`, `when` or `unless`, or remove it")
		}
	}
}

// eachCondition calls f with every condition of the file.
func (p *pass) eachCondition(f func(rulefile.Condition)) {
	var all []whenUnless
	for _, c := range p.whole.Classes {
		all = append(all, whenUnless{c.When, c.Unless})
	}
	for _, e := range p.whole.Exempt {
		all = append(all, whenUnless{e.When, e.Unless})
	}
	for _, r := range p.whole.Rules {
		all = append(all, whenUnless{r.When, r.Unless})
		for _, b := range r.For {
			all = append(all, whenUnless{b.When, b.Unless})
		}
	}
	for _, g := range all {
		for _, c := range g.when {
			f(c)
		}
		for _, c := range g.unless {
			f(c)
		}
	}
}
