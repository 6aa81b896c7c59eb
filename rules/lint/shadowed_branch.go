package lint

import (
	"fmt"
	"slices"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func shadowedBranch(p *pass) {
	for _, r := range p.file.Rules {
		branches := slices.DeleteFunc(slices.Clone(r.For), func(b rulefile.Branch) bool { return b.Made })
		for i := range branches {
			b := &branches[i]
			own := whenUnless{b.When, b.Unless}
			switch {
			case p.never(own, own):
				p.warn(b.Pos, "the conditions of this branch exclude each other, so it is never reached", "remove one of them, or make two branches")
			case p.never(own, whenUnless{r.When, r.Unless}):
				p.warn(b.Pos, "this branch is never reached, because the conditions of "+diag.Quote(r.Name.Text)+" itself exclude it", "remove the branch, or widen the conditions of the rule")
			default:
				if by := p.shadow(branches[:i], b); by != nil {
					p.warn(b.Pos, fmt.Sprintf("this branch is never reached: the one in line %d holds whenever it does, and the first that holds is taken", by.Pos.Line),
						"put the narrower branch first, or remove it")
				}
			}
		}
	}
}

// shadow returns the first of the branches before b that keep it from being reached; nil if it can
// be reached. Different branches may take different values of b.
func (p *pass) shadow(before []rulefile.Branch, b *rulefile.Branch) *rulefile.Branch {
	var by *rulefile.Branch
	for _, when := range combinations(b.When) {
		i := slices.IndexFunc(before, func(o rulefile.Branch) bool {
			return o.Until.IsZero() && p.within(whenUnless{when, b.Unless}, whenUnless{o.When, o.Unless})
		})
		if i < 0 {
			return nil
		}
		if by == nil {
			by = &before[i]
		}
	}
	return by
}

// within reports whether b holds whenever a does.
func (p *pass) within(a, b whenUnless) bool {
	if !p.implies(a.when, b.when) {
		return false
	}
	return len(b.unless) == 0 || p.never(whenUnless{when: a.when}, whenUnless{when: b.unless}) ||
		len(a.unless) > 0 && p.implies(b.unless, a.unless)
}

// maxCombinations bounds the combinations that are tried; a branch with more is compared as a
// whole.
const maxCombinations = 256

// combinations splits conditions into sets with one value each, which together mean the same.
func combinations(conditions []rulefile.Condition) [][]rulefile.Condition {
	all := [][]rulefile.Condition{nil}
	for _, c := range conditions {
		if len(all)*len(c.Any) > maxCombinations {
			return [][]rulefile.Condition{conditions}
		}
		var longer [][]rulefile.Condition
		for _, head := range all {
			for _, t := range c.Any {
				one := rulefile.Condition{Name: c.Name, Any: []rulefile.Test{t}}
				longer = append(longer, append(slices.Clone(head), one))
			}
		}
		all = longer
	}
	return all
}
