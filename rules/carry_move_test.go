package rules

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/store/memory"
)

// Whichever branches, tiers and rows come and go: the number of callers that are newly refused is
// between those foretold.
func TestCarryForetellsCallersOfBranches(t *testing.T) {
	const identify = "identify: { user: client header X-User, role: client header X-Role }\n"
	rule := func(terms string) string {
		return identify + "rules: [{ name: api, per: user, missing: skip, " + terms + " }]"
	}
	branch := func(role, limits string) string { return "{ when: { role: " + role + " }, limits: " + limits + " }" }
	tiers := func(others string) string {
		return "tiers: { free: { limits: 10/minute }" + others + " }\n" + rule("tier: { from: role, else: free }")
	}
	variants := []string{
		rule("limits: 10/minute"),
		rule("limits: 12/minute"),
		rule("limits: { rate: 10/minute, algorithm: token_bucket }"),
		rule("limits: unlimited"),
		rule("limits: 10/minute, for: [" + branch("premium", "20/minute") + "]"),
		rule("limits: 10/minute, for: [" + branch("[premium, gold]", "15/minute") + "]"),
		rule("limits: 10/minute, for: [" + branch("guest", "3/minute") + "]"),
		rule("limits: 10/minute, for: [" + branch("premium", "unlimited") + "]"),
		rule("limits: 10/minute, for: [" + branch("premium", "20/minute") + ", " + branch("guest", "3/minute") + "]"),
		rule("limits: 10/minute, for: [{ when: { user: \"guest-*\" }, limits: 8/minute }, " + branch("guest", "3/minute") + "]"),
		rule("limits: 10/minute, for: [" + branch("premium", "{ rate: 20/minute, algorithm: fixed_window }") + "]"),
		rule("limits: { by: role, rows: { premium: 20/minute, guest: 3/minute }, else: 10/minute }"),
		rule("limits: { by: role, rows: { guest: 3/minute }, else: 10/minute }"),
		tiers(""),
		tiers(", premium: { limits: 20/minute }"),
		tiers(", premium: { limits: 20/minute }, guest: { limits: 3/minute }"),
	}
	newlyRefused := 0
	for i, old := range variants {
		for j, now := range variants {
			if testdep.RaceEnabled && (i+j)%3 != 1 {
				continue
			}
			d := newDesk(t, old)
			store := memory.Open(memory.Config{Now: d.now})
			d.gate = tidegate.NewGate(d.live, store)
			refused := func(user, role string) bool {
				return !d.gate.Peek(context.Background(), as("GET /", "user", user, "role", role)).OK
			}
			roles, before, names := make(map[string]string), make(map[string]bool), []string(nil)
			for _, role := range []string{"premium", "gold", "guest", "other"} {
				for _, used := range []int{1, 2, 4, 7, 9, 11, 13, 17, 19, 25} {
					user := fmt.Sprint(role, "-", used)
					names, roles[user] = append(names, user), role
					for range used {
						d.ask(as("GET /", "user", user, "role", role))
					}
					before[user] = refused(user, role)
				}
			}
			set := parse(t, now, d.config())
			any, all := make(map[string]bool), make(map[string]bool)
			for _, c := range Carry(d.live.Set(), set) {
				was, will := foretoldOf(t, store, &c, names)
				for user := range was {
					newly := make([]bool, len(was[user]))
					for k := range newly {
						newly[k] = will[user][k] && !was[user][k]
					}
					any[user] = any[user] || slices.Contains(newly, true)
					all[user] = all[user] || !slices.Contains(newly, false)
				}
			}
			d.live.Swap(set)
			for _, user := range names {
				newly := refused(user, roles[user]) && !before[user]
				if newly {
					newlyRefused++
				}
				if newly && !any[user] || !newly && all[user] {
					t.Errorf("%d to %d: %s is newly refused: %t, foretold by some: %t, by all: %t\n%s\n%s", i, j, user, newly, any[user], all[user], old, now)
				}
			}
		}
	}
	if newlyRefused < 100 {
		t.Errorf("only %d callers were newly refused: does this test anything?", newlyRefused)
	}
}
