package rules

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
)

// In shadow mode nobody is refused, and what would have been is counted; so it is in a rule that only
// tries.
func TestShedInShadow(t *testing.T) {
	for _, src := range []string{
		"rules: [{ name: a, per: ip, limits: 1000000/hour }]\nshed: { while: cpu > 80%, mode: shadow }",
		"rules: [{ name: a, per: ip, limits: 1000000/hour, shed: { while: cpu > 80%, mode: shadow } }]",
		"rules: [{ name: a, per: ip, limits: 1000000/hour, mode: shadow, shed: { while: cpu > 80% } }]",
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newShedDesk(t, src)
			over := 0
			d.gate = d.gate.Observe(func(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
				for _, c := range checks {
					if c.Limit.Algorithm == tidegate.Deny && c.Over && c.Advisory && c.Limit.Terms.Role == tidegate.Tries {
						over++
					}
				}
			})
			d.press("cpu", 1, 20*time.Second)
			over = 0
			before := d.live.Set().Shedding()[0].Requests
			if n := d.shed("GET /"); n != 0 || over != 1000 {
				t.Errorf("%s\n%d are refused, %d would have been; want 0 and 1000", src, n, over)
			}
			if got := d.live.Set().Shedding()[0].Requests - before; got != 1000 {
				t.Errorf("%s\n%d are counted", src, got)
			}
		})
	}
}

// A reload changes nothing about what is shed: the level stays, and so do the counts.
func TestShedAcrossReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShedDesk(t, shedRules)
		d.press("cpu", 1, 15050*time.Millisecond)
		before := d.live.Set().Shedding()[0]
		d.live.Swap(d.parse(strings.Replace(shedRules, "1000000/hour", "2000000/hour", 1)))
		if after := d.live.Set().Shedding()[0]; fmt.Sprint(after) != fmt.Sprint(before) || after.Steps != 15 {
			t.Errorf("%+v after a reload of %+v", after, before)
		}
		d.live.Swap(d.parse(strings.Replace(shedRules, "never: critical", "never: paying", 1)))
		if after := d.live.Set().Shedding()[0]; after.Steps != 10 || after.Most != 10 {
			t.Errorf("with fewer classes to shed: %+v", after)
		}
		d.live.Swap(d.parse("rules: [{ name: api, per: user, limits: 5/hour }]\nidentify: { user: jwt.sub }"))
		if after := d.live.Set().Shedding(); len(after) != 0 {
			t.Errorf("without shed: %+v", after)
		}
	})
}

// A rule that gains shed begins at no level, and so does one that only tried before: everything would be
// refused at once. One that loses it refuses nobody any more, and other rules do not notice.
func TestShedIsGainedAndLost(t *testing.T) {
	const with, shadow, tries, without = ", shed: { while: cpu > 80% }", ", shed: { while: cpu > 80%, mode: shadow }", ", shed: { while: cpu > 80% }, mode: shadow", ""
	rules := func(shed string) string {
		return "rules:\n  - { name: a, match: /a, per: ip, limits: 1000000/hour" + shed + " }\n" +
			"  - { name: b, match: /b, per: ip, limits: 1000000/hour, shed: { while: load > 4 } }\n"
	}
	f := func(name, before, after string, kept bool) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newShedDesk(t, rules(before))
				steps := func(rule string) int {
					for _, is := range d.live.Set().Shedding() {
						if is.Rule == rule {
							return is.Steps
						}
					}
					return -1
				}
				press := func(lasts time.Duration) {
					for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						_ = d.signals.Push("cpu", 1)
						_ = d.signals.Push("load", 5)
						d.live.Set().Shedding()
					}
				}
				press(6050 * time.Millisecond)
				was := steps("a")
				d.live.Swap(d.parse(rules(after)))
				is, want := steps("a"), 0
				switch {
				case after == without:
					want = -1
				case kept:
					want = was
				}
				if is != want || steps("b") != 6 {
					t.Errorf("a is at %d, and was at %d; want %d. b is at %d, want 6", is, was, want, steps("b"))
				}
				if n := d.shed("GET /a"); (n > 0) != (want > 0 && after == with) {
					t.Errorf("%d of a are shed", n)
				}
				press(3 * time.Second)
				if after == with && !kept && steps("a") != 3 {
					t.Errorf("a is at %d three seconds later", steps("a"))
				}
			})
		})
	}
	f("gained", without, with, false)
	f("lost", with, without, false)
	f("as before", with, with, true)
	f("from shadow", shadow, with, false)
	f("from a rule that tries", tries, with, false)
	f("to shadow", with, shadow, true)
	f("to a rule that tries", with, tries, true)
	f("lost while it tries", shadow, without, false)
	synctest.Test(t, func(t *testing.T) { // lost and gained again
		d := newShedDesk(t, rules(with))
		d.press("cpu", 1, 9*time.Second)
		d.live.Swap(d.parse(rules(without)))
		d.live.Swap(d.parse(rules(with)))
		if n := d.shed("GET /a"); n != 0 {
			t.Errorf("%d are shed by a rule that had lost it", n)
		}
	})
}

// A program may put an earlier Set in force again while requests still use it. The level goes on from
// where it is, whenever the rules were parsed.
func TestShedOfAnEarlierSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShedDesk(t, shedRules)
		first := d.live.Set()
		d.press("cpu", 1, 5050*time.Millisecond)
		d.live.Swap(d.parse(shedRules))
		d.press("cpu", 1, 5*time.Second)
		var asking sync.WaitGroup
		for range 3 {
			asking.Go(func() {
				for range 300 {
					first.Match(as("GET /", "ip", "192.0.2.1"), nil)
				}
			})
		}
		for range 50 {
			d.live.Swap(d.live.Swap(first))
		}
		d.live.Swap(first)
		asking.Wait()
		if is := d.live.Set().Shedding()[0]; is.Steps != 10 {
			t.Errorf("%+v, want 10 steps", is)
		}
		d.press("cpu", 1, 3*time.Second)
		if is := d.live.Set().Shedding()[0]; is.Steps != 13 {
			t.Errorf("three seconds later: %+v, want 13 steps", is)
		}
	})
}
