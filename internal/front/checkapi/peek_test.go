package checkapi

import (
	"fmt"
	"math"
	"net/http"
	"strings"
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

// Whatever a rule says beside its limits, peek answers as check does next, for every cost there is.
func TestPeekSaysWhatCheckDoes(t *testing.T) {
	forms := map[string]string{
		"plain":    "limits: 10/hour",
		"burst":    "limits: { rate: 10/hour, burst: 20, algorithm: token_bucket }",
		"leaky":    "limits: { rate: 10/hour, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 5m }",
		"soft":     "limits: 10/hour, over: { soft: 50% }",
		"for-time": "limits: 10/hour, over: { soft: 50%, max_time: 30m }",
		"elastic":  "limits: 10/hour, over: { elastic: { while: upstream_p99 < 200ms, up_to: 2x } }",
		"two":      "limits: [10/hour, { rate: 15/day, algorithm: fixed_window }]",
		"quota":    "limits: 10/hour, quota: 12/day",
		"fixed":    "limits: 10/hour, cost: 3",
		"estimate": "limits: 10/hour, cost: { reserve: query n, else: 2, max: 9 }",
		"count":    "limits: 10/hour, count: { status: 401 }",
		"block":    "limits: 10/hour, block: 15m",
		"aside":    "limits: 10/hour, set_aside: { critical: 30% }",
		"slots":    "concurrency: { slots: 3, lease: 30m }",
		"queue":    "limits: 10/hour, queue: { places: 5, max_wait: 5m }",
	}
	var rules strings.Builder
	rules.WriteString("classes: [{ name: critical, match: /critical }, { name: rest }]\nrules:\n")
	for name, form := range forms {
		fmt.Fprintf(&rules, "  - { name: %s, match: /%s, per: ip, %s }\n", name, name, form)
	}
	f := func(t *testing.T, s http.Handler) {
		for name := range forms {
			for at, cost := range []int64{math.MaxInt64, 11, 1, 21, 4, math.MaxInt64 - 5, 6, 5, 3, 2, 1, 1, 1, 1, 2, math.MaxInt64} {
				question := fmt.Sprintf(`{"path":"/%s","ip":"192.0.2.1","cost":%d}`, name, cost)
				peek, check := post(t, s, "peek", question), post(t, s, "check", question)
				if peek.Decision != check.Decision || peek.Never != check.Never || peek.Limit != check.Limit || peek.Soft != check.Soft {
					t.Errorf("%s, number %d, a cost of %d: peek says %+v, check %+v", name, at, cost, peek, check)
				}
			}
		}
	}
	t.Run("memory", func(t *testing.T) { f(t, newServer(t, rules.String(), nil)) })
	t.Run("redis", func(t *testing.T) {
		server := testdep.Redis(t)
		store, err := fleet.Open("redis://"+server.Addr, fleet.Options{Deadline: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		f(t, serverOn(t, store, rules.String(), patient))
	})
}
