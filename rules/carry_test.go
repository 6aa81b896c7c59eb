package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

// foretold surveys the keys named by names: who is refused by the rules in force, and who would
// be by the others, by every version of what they are held to.
func foretold(t *testing.T, store *memory.Store, old, set *Set, names []string) (was, now map[string][]bool) {
	t.Helper()
	was, now = make(map[string][]bool), make(map[string][]bool)
	for _, c := range Carry(old, set) {
		before, after := foretoldOf(t, store, &c, names)
		for key := range before {
			was[key], now[key] = append(was[key], before[key]...), append(now[key], after[key]...)
		}
	}
	return was, now
}

// foretoldOf is foretold of one counter.
func foretoldOf(t *testing.T, store *memory.Store, c *Carried, names []string) (was, now map[string][]bool) {
	t.Helper()
	was, now = make(map[string][]bool), make(map[string][]bool)
	for _, v := range c.Versions {
		var asked []tidegate.Check
		for _, check := range []tidegate.Check{v.Was, v.Now} {
			if check.Limit != nil {
				asked = append(asked, check)
			}
		}
		if _, err := store.Survey(context.Background(), [][]tidegate.Check{asked}, [][]string{names}, func(_ int, key string, left []int64) {
			i, refused := 0, [2]bool{}
			for j, check := range []tidegate.Check{v.Was, v.Now} {
				if check.Limit != nil {
					refused[j] = left[i] == 0
					i++
				}
			}
			was[key], now[key] = append(was[key], refused[0]), append(now[key], refused[1])
		}); err != nil {
			t.Fatal(err)
		}
	}
	return was, now
}

// Whatever limit takes the place of another, and with whatever number: who is foretold to be
// refused is refused, and nobody else.
func TestCarryForetells(t *testing.T) {
	for from, old := range limitVariants {
		for to, terms := range limitVariants {
			for _, events := range []string{"10/", "4/", "25/"} {
				now := strings.Replace(terms, "10/", events, 1)
				name := fmt.Sprintf("%s to %s of %s", from, to, events)
				d := newDesk(t, rulesOf(old))
				store := memory.Open(memory.Config{Now: d.now})
				d.gate = tidegate.NewGate(d.live, store)
				d.wait(7 * time.Second)
				var names []string
				refusedBefore := make(map[string]bool)
				for used := 1; used <= 12; used++ {
					user := fmt.Sprint("u", used)
					names = append(names, user)
					for range used {
						refusedBefore[user] = !d.ask(as("GET /", "user", user)).OK
					}
					refusedBefore[user] = !d.gate.Peek(context.Background(), as("GET /", "user", user)).OK
				}
				set := parse(t, rulesOf(now), d.config())
				was, will := foretold(t, store, d.live.Set(), set, names)
				carried := len(Carry(d.live.Set(), set)) > 0
				d.live.Swap(set)
				for _, user := range names {
					refused := !d.gate.Peek(context.Background(), as("GET /", "user", user)).OK
					if !carried { // nothing changes
						if refused != refusedBefore[user] {
							t.Errorf("%s: nothing was foretold, and %s is refused: %t, before: %t", name, user, refused, refusedBefore[user])
						}
						continue
					}
					if !slices.Equal(was[user], []bool{refusedBefore[user]}) || !slices.Equal(will[user], []bool{refused}) {
						t.Errorf("%s: %s is refused %t and then %t, foretold %t and %t", name, user, refusedBefore[user], refused, was[user], will[user])
					}
				}
			}
		}
	}
}

func TestCarryVersions(t *testing.T) {
	f := func(old, now string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range Carry(parse(t, old, Config{}), parse(t, now, Config{})) {
			for _, v := range c.Versions {
				text := func(c tidegate.Check) string {
					if c.Limit == nil {
						return "nobody"
					}
					return fmt.Sprintf("%d/%s", c.Limit.Events, c.Limit.Period)
				}
				got = append(got, c.Rule+": "+text(v.Was)+" → "+text(v.Now))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	rule := func(terms string) string { return rulesOf("missing: skip, " + terms) } // else who has no name is counted by address
	f(rule("limits: 10/minute"), rule("limits: 10/minute"))
	f(rule("limits: 10/minute"), rule("limits: 5/minute"), "api: 10/1m0s → 5/1m0s")
	f(rule("limits: 10/minute, mode: shadow"), rule("limits: 10/minute"), "api: nobody → 10/1m0s")
	f(rule("limits: 10/minute"), rule("limits: 10/minute, mode: shadow"), "api: 10/1m0s → nobody")
	f(rule("limits: 10/minute, mode: shadow"), rule("limits: 5/minute, mode: shadow"))
	f(rule("limits: 10/minute"), rule("limits: 5/minute, enforce: 50%"), "api: 10/1m0s → 5/1m0s", "api: 10/1m0s → nobody")
	f(rule("limits: 10/minute, enforce: 50%"), rule("limits: 10/minute"), "api: 10/1m0s → 10/1m0s", "api: nobody → 10/1m0s")
	f(rule("limits: 10/minute, for: [{ when: { user: ann }, limits: 20/minute }]"), rule("limits: 10/minute, for: [{ when: { user: ann }, limits: 15/minute }]"),
		"api: 10/1m0s → 10/1m0s", "api: 20/1m0s → 15/1m0s")
	withRole := func(terms string) string {
		return strings.Replace(rule(terms), "identify: {", "identify: { role: client header X-Role,", 1)
	}
	// Callers of a branch that is gone, or new, go from or to the rule itself.
	role := func(branches string) string {
		return strings.Replace(withRole("limits: 70/minute, for: ["+branches+"]"), ", for: []", "", 1)
	}
	many, few := "{ when: { role: premium }, limits: 100/minute }", "{ when: { role: guest }, limits: 65/minute }"
	f(role(many), role(""), "api: 70/1m0s → 70/1m0s", "api: 100/1m0s → 70/1m0s")
	f(role(""), role(many), "api: 70/1m0s → 70/1m0s", "api: 70/1m0s → 100/1m0s")
	f(role(many+", "+few), role(few), "api: 70/1m0s → 70/1m0s", "api: 65/1m0s → 65/1m0s", "api: 100/1m0s → 70/1m0s") // nobody has both roles
	f(role("{ when: { user: ann }, limits: 100/minute }, "+few), role(few), "api: 70/1m0s → 70/1m0s", "api: 65/1m0s → 65/1m0s", "api: 100/1m0s → 70/1m0s", "api: 100/1m0s → 65/1m0s")
	f(role("{ when: { role: premium }, limits: { rate: 100/minute, algorithm: fixed_window } }"), role("")) // the rule has not counted these
	f(role("{ when: { role: premium }, limits: unlimited }"), role(""))
	f(withRole("limits: { by: role, rows: { a: 100/minute, b: 90/minute }, else: 70/minute }"), withRole("limits: { by: role, rows: { b: 90/minute }, else: 70/minute }"),
		"api: 70/1m0s → 70/1m0s", "api: 90/1m0s → 90/1m0s", "api: 100/1m0s → 70/1m0s")
	tier := func(tiers string) string {
		return "tiers: { free: { limits: 70/minute }" + tiers + " }\n" + withRole("tier: { from: role, else: free }")
	}
	f(tier(", pro: { limits: 100/minute }"), tier(""), "api: 70/1m0s → 70/1m0s", "api: 100/1m0s → 70/1m0s")
	f(rule("limits: { from: jwt.rpm, per: minute, max: 1000, else: 10 }"), rule("limits: { from: jwt.rpm, per: minute, max: 500, else: 10 }"),
		"api: 10/1m0s → 10/1m0s", "api: 1000/1m0s → 500/1m0s")
	f(rule("limits: [10/minute, 100/hour]"), rule("limits: [10/minute, 50/hour]"), "api: 100/1h0m0s → 50/1h0m0s")
	f(rule("limits: 10/minute"), strings.Replace(rule("limits: 5/minute"), "api", "other", 1)) // its counters start empty
	f(rule("limits: 10/minute"), strings.Replace(rule("limits: 5/minute"), "per: user", "per: ip", 1))
}
