package rules

import (
	"fmt"
	"testing"
)

// Whatever a reload makes of the rule's algorithm and period, what somebody has used under an
// override counts on under it.
func TestReloadRefillsNobodyUnderAnOverride(t *testing.T) {
	var forms []string
	for _, a := range []string{"token_bucket", "fixed_window", "sliding_log", "sliding_window", "sub_windows"} {
		for _, period := range []string{"minute", "hour"} {
			forms = append(forms, fmt.Sprintf("limits: { rate: 10/%s, algorithm: %s }", period, a))
		}
	}
	forms = append(forms, "limits: 10/minute", "limits: [10/minute, 20/hour]", "limits: 1000/hour", "limits: 10/day", "limits: 1000/minute, consistency: leased")
	file := func(form string) string {
		return "identify: { user: header X-User }\nrules: [{ name: api, per: user, " + form + " }]\n"
	}
	for _, from := range forms {
		for _, to := range forms {
			d := newDesk(t, file(from))
			ann := request("GET /", "header X-User", "ann")
			d.set(override("o-1", "user=ann", "api", "40/minute"))
			d.admits(30, ann)
			d.reload(file(to))
			admitted := 0
			for d.ask(ann).OK {
				admitted++
			}
			if admitted != 10 {
				t.Errorf("%s → %s: %d more are admitted, want 10", from, to, admitted)
			}
		}
	}
}

// The same for a caller who has a branch: its override counts like the limits of the branch.
func TestReloadRefillsNobodyInABranch(t *testing.T) {
	file := func(own, branch string) string {
		return "identify: { user: header X-User }\nrules: [{ name: api, per: user, limits: { rate: " + own + " }, for: [{ when: { user: [ann, bob] }, limits: { rate: " + branch + " } }] }]\n"
	}
	forms := []string{"10/minute, algorithm: token_bucket", "10/minute, algorithm: fixed_window", "10/hour, algorithm: fixed_window", "10/hour, algorithm: token_bucket", "10/minute"}
	for _, own := range forms {
		for _, from := range forms {
			for _, to := range forms {
				d := newDesk(t, file(own, from))
				ann := request("GET /", "header X-User", "ann")
				d.set(override("o-1", "user=ann", "api", "40/minute"))
				d.admits(30, ann)
				d.reload(file(own, to))
				admitted := 0
				for d.ask(ann).OK {
					admitted++
				}
				if admitted != 10 {
					t.Errorf("%s: %s → %s: %d more are admitted, want 10", own, from, to, admitted)
				}
			}
		}
	}
}
