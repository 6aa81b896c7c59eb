package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// Random files replace each other, so that a rule of one name limits, denies, is disabled, and gets
// and loses tiers and branches in every order. Whatever looks at the change comes to an end, requests
// are held to all the checks of the rules in force, and a process that is started under the new rules
// holds them to the same predecessors as one that reloads.
func TestRandomReloads(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	series := 20
	if testdep.RaceEnabled { // which only takes time where one goroutine asks
		series = 3
	}
	for range series {
		d := newDesk(t, randomFile(random, pick))
		for range 6 {
			old := d.live.Set()
			src := randomFile(random, pick)
			set := parse(t, src, d.config())
			Carry(old, set)
			Compare(old, set)
			data, err := d.live.Remember()
			if err != nil {
				t.Fatal(err)
			}
			d.live.Swap(set)
			next := NewLive(parse(t, src, d.config()))
			if _, err := next.Recall(data); err != nil {
				t.Fatal(err)
			}
			for range 10 {
				r := requestOf(pick("GET", "POST"), pick("/", "/a", "/a/b", "/t/x"),
					"header X-User=u"+fmt.Sprint(random.IntN(12))+" "+pick("", "header X-Role=gold ")+"body.n=3")
				held := d.live.Match(r, nil)
				for _, c := range set.Match(r, nil) {
					if !slices.ContainsFunc(held, func(h tidegate.Check) bool { return h.Limit.Identity() == c.Limit.Identity() && h.Key == c.Key }) {
						t.Errorf("not held to %sbut to\n%s", show([]tidegate.Check{c}), show(held))
					}
				}
				if got, want := show(next.Match(r, nil)), show(held); got != want {
					t.Errorf("a process that was started is held to\n%sand one that reloads to\n%sby\n%s", got, want, src)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// A rule that limits is changed to refuse, as somebody does who closes a route at once, and back:
// whoever had used up the limit finds it used up.
func TestLimitBecomesDenyAndBack(t *testing.T) {
	const deny = "rules: [{ name: api, deny: true }]"
	for name, limits := range limitVariants {
		d := newDesk(t, rulesOf(limits))
		for d.ask(as("GET /", "user", "ann")).OK {
		}
		d.reload(deny)
		if a := d.refuses(as("GET /", "user", "bob")); a.Limit.Algorithm != tidegate.Deny {
			t.Errorf("%s: bob is refused by %v", name, a.Limit)
		}
		d.reload(rulesOf(limits))
		d.refuses(as("GET /", "user", "ann"))
		if !d.ask(as("GET /", "user", "bob")).OK {
			t.Errorf("%s: bob is refused after the rule limits again", name)
		}
	}
}
