package admin

import (
	"fmt"
	"strings"
	"testing"
)

// ruleNumber has one rule of many, by whether all match the same path.
var ruleNumber = map[string]string{
	"paths of their own": "  - { name: r%[1]d, match: /r%[1]d/, per: user, limits: 5/minute }\n",
	"no path":            "  - { name: r%[1]d, per: user, limits: 5/minute }\n",
	"one path":           "  - { name: r%[1]d, match: [/all/, /r%[1]d/], per: user, limits: 5/minute }\n",
}

// What it takes to find the counters of somebody grows with the rules, and not with their square: a
// ban waits for it.
func TestFindingGrowsWithTheRules(t *testing.T) {
	for name, line := range ruleNumber {
		work := func(rules int) float64 {
			var src strings.Builder
			src.WriteString("identify: { user: header X-User }\nrules:\n")
			for i := range rules {
				fmt.Fprintf(&src, line, i)
			}
			d := newDesk(t, src.String(), nil)
			q := Question{As: pairs([]string{"user", "42"})}
			return testing.AllocsPerRun(1, func() {
				f := finder{question: q, live: d.rules.live}
				if err := f.run(); err != nil || len(f.found) != rules {
					t.Errorf("%s: %d counters of %d rules: %v", name, len(f.found), rules, err)
				}
			})
		}
		if few, many := work(50), work(400); many > 16*few {
			t.Errorf("%s: 50 rules take %.0f allocations, 400 take %.0f", name, few, many)
		}
	}
}
