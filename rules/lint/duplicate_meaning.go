package lint

import (
	"fmt"
	"slices"
	"strings"

	"tidegate.dev/tidegate/internal/lang/diag"
	"tidegate.dev/tidegate/internal/lang/rulefile"
)

func duplicateMeaning(p *pass) {
	before := make(map[string][]*rulefile.Rule)
	for _, r := range p.file.Rules {
		if r.Mode == rulefile.Disabled {
			continue
		}
		described := meaning(r)
		same := before[described]
		before[described] = append(same, r)
		for _, o := range same {
			p.step(1 + len(o.InsteadOf) + len(r.InsteadOf))
			if replaces(o, r) || replaces(r, o) {
				continue
			}
			if b, first, ok := p.samePeriod(r, o); ok {
				p.warn(b.Pos, fmt.Sprintf("%s limits the same requests by the same value over the same time as %s does with %s, and the smaller number decides", diag.Quote(r.Name.Text), diag.Quote(o.Name.Text), first.label()),
					"keep one of the two")
				break
			}
		}
	}
}

// samePeriod finds two limits, one of each rule, with the same period.
func (p *pass) samePeriod(r, o *rulefile.Rule) (b, first knownLimit, ok bool) {
	others := knownLimits(o.Terms)
	for _, b := range knownLimits(r.Terms) {
		p.step(len(others))
		for _, first := range others {
			if b.Spec.Period == first.Spec.Period && b.Spec.Calendar == first.Spec.Calendar {
				return b, first, true
			}
		}
	}
	return knownLimit{}, knownLimit{}, false
}

// replaces reports whether r is written instead of o.
func replaces(r, o *rulefile.Rule) bool {
	return slices.ContainsFunc(r.InsteadOf, func(name rulefile.Word) bool { return name.Text == o.Name.Text })
}

// meaning returns what r counts as text: its mode, its requests, what it counts by, and the cost.
func meaning(r *rulefile.Rule) string {
	var match, per []string
	for _, m := range r.Match {
		match = append(match, m.Text)
	}
	for _, word := range r.Per {
		per = append(per, word.Text)
	}
	slices.Sort(match)
	slices.Sort(per)
	described := fmt.Sprintf("%d %q %q when %s unless %s", r.Mode, match, per, conditionText(r.When), conditionText(r.Unless))
	if c := r.Terms.Cost; c != nil {
		described += fmt.Sprintf(" cost %d %d %d %d %s", c.Fixed, c.Else, c.Min, c.Max, c.Settle)
		for _, s := range c.Reserve {
			described += fmt.Sprintf(" %v %s", c.Sum, s.Text)
		}
	}
	if r.Count != nil {
		described += fmt.Sprint(" count ", r.Count.Status)
	}
	return described
}

func conditionText(conditions []rulefile.Condition) string {
	var all []string
	for _, c := range conditions {
		var any []string
		for _, t := range c.Any {
			any = append(any, fmt.Sprintf("%d %q", t.Kind, t.Text))
		}
		slices.Sort(any)
		all = append(all, fmt.Sprintf("%q: %s", c.Name.Text, strings.Join(any, ", ")))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
