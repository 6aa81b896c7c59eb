package checkapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"tidegate.dev/tidegate/fleet"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Peek tells of any cost what check would answer, by every algorithm, and charges nothing.
func TestPeekOfAnyCost(t *testing.T) {
	rules := "rules:\n"
	algorithms := []string{"token_bucket", "fixed_window", "sliding_window", "sliding_log", "sub_windows", "quota"}
	for _, a := range algorithms {
		limit := "limits: { rate: 10/hour, algorithm: " + a + " }"
		if a == "quota" {
			limit = "quota: 10/day"
		}
		rules += fmt.Sprintf("  - { name: %s, match: /%s, per: ip, %s }\n", a, a, limit)
	}
	f := func(t *testing.T, s http.Handler) {
		for _, a := range algorithms {
			ask := func(verb string, cost int) answer {
				t.Helper()
				return post(t, s, verb, fmt.Sprintf(`{"path":"/%s","ip":"192.0.2.1","cost":%d}`, a, cost))
			}
			ask("check", 4)
			for _, cost := range []int{1, 5, 6} {
				if p := ask("peek", cost); p.Decision != "allowed" || p.Remaining != 6 || p.Limit != 10 {
					t.Errorf("%s, a cost of %d: %+v", a, cost, p)
				}
			}
			for _, cost := range []int{10, 9, 7} { // a refusal that a node remembers is also that of higher costs
				p, c := ask("peek", cost), ask("check", cost)
				near := p.RetryAfter-c.RetryAfter < 5 && c.RetryAfter-p.RetryAfter < 5 // the clock goes on between the two
				if p.Decision != "limited" || c.Decision != "limited" || p.Remaining != c.Remaining || p.Never || !near {
					t.Errorf("%s, a cost of %d: peek says %+v, check %+v", a, cost, p, c)
				}
			}
			if p, c := ask("peek", 11), ask("check", 11); p.Decision != "limited" || !p.Never || !c.Never || p.Remaining != c.Remaining {
				t.Errorf("%s, a cost of 11: peek says %+v, check %+v", a, p, c)
			}
			if p := ask("peek", 1); p.Remaining != 6 {
				t.Errorf("%s: something was charged: %+v", a, p)
			}
		}
	}
	t.Run("memory", func(t *testing.T) { f(t, newServer(t, rules, nil)) })
	t.Run("redis", func(t *testing.T) {
		server := testdep.Redis(t)
		store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		f(t, serverOn(t, store, rules, patient))
	})
}
