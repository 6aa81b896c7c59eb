package rules

import (
	"fmt"
	"strings"
	"testing"
)

// Chains of every length: where the last applies, it alone does; where its own
// conditions do not hold, the one before it does.
func TestInsteadOfChains(t *testing.T) {
	for length := 2; length <= 12; length++ {
		var b strings.Builder
		b.WriteString("identify: { depth: header X-Depth }\nrules:\n")
		for i := range length {
			when, replacing := "", ""
			if i > 0 {
				var deeper []string // rule i holds for requests of depth i and more
				for d := i; d < length; d++ {
					deeper = append(deeper, fmt.Sprint("d", d))
				}
				when = fmt.Sprintf("when: { depth: [%s] }, ", strings.Join(deeper, ", "))
				replacing = fmt.Sprintf(", instead_of: r%d", i-1)
			}
			fmt.Fprintf(&b, "  - { name: r%d, %sper: ip, limits: %d/minute%s }\n", i, when, i+1, replacing)
		}
		set := parse(t, b.String(), Config{})
		for depth := range length {
			r := request("GET /", "ip", "192.0.2.1", "header X-Depth", fmt.Sprint("d", depth))
			checks := set.Match(r, nil)
			if len(checks) != 1 || checks[0].Limit.Name != fmt.Sprint("r", depth) {
				t.Errorf("%d rules, depth %d: %s", length, depth, show(checks))
			}
			why := 0
			for _, x := range set.Explain(r).Rules {
				if len(x.Checks) > 0 {
					why++
				}
			}
			if why != 1 {
				t.Errorf("%d rules, depth %d: explain has %d rules that apply", length, depth, why)
			}
		}
	}
}
