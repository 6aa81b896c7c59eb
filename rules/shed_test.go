package rules

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/store/memory"
)

const shedRules = `
identify: { user: jwt.sub, plan: jwt.plan }
classes:
  - { name: critical, match: POST /charges }
  - { name: paying, when: { plan: pro } }
  - { name: rest }
exempt: [{ match: /healthz }]
shed: { while: [cpu > 85%, inflight > 2000], never: critical }
rules:
  - { name: api, per: user, limits: 1000000/hour }
`

// shedDesk is a gate whose signals are pushed. It runs in virtual time.
type shedDesk struct {
	*testing.T
	signals Pushed
	told    []string
	live    *Live
	gate    *tidegate.Gate
}

func newShedDesk(t *testing.T, src string) *shedDesk {
	d := &shedDesk{T: t}
	d.live = NewLive(d.parse(src))
	d.gate = tidegate.NewGate(d.live, memory.New())
	return d
}

func (d *shedDesk) parse(src string) *Set {
	d.Helper()
	return parse(d.T, src, Config{Signals: &d.signals, OnShed: func(s Shedding) {
		d.told = append(d.told, fmt.Sprintf("%s %d/%d %s %.1f", s.Rule, s.Steps, s.Most, s.Class, s.Share))
	}})
}

// press keeps a signal at a value for so long, while somebody asks ten times a second.
func (d *shedDesk) press(signal string, value float64, lasts time.Duration) {
	d.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err := d.signals.Push(signal, value); err != nil {
			d.Fatal(err)
		}
		d.ask(as("GET /healthz/other", "ip", "192.0.2.1"))
	}
}

func (d *shedDesk) ask(r *tidegate.Request) tidegate.Decision {
	return d.gate.Decide(context.Background(), r)
}

// shed is how many of a thousand clients are shed.
func (d *shedDesk) shed(line string, more ...string) (n int) {
	d.Helper()
	for i := range 1000 {
		ip := fmt.Sprintf("198.51.%d.%d", 100+i/250, i%250)
		got := d.ask(as(line, append([]string{"ip", ip, "user", ip}, more...)...))
		if got.OK {
			continue
		}
		if n++; got.Never || got.Limit == nil || !got.Limit.Sheds() || got.RetryAfter < 5*time.Second || got.RetryAfter%(5*time.Second) != 0 {
			d.Fatalf("a request that is shed is told %+v", got)
		}
	}
	return n
}

// While a signal is above its bound, the least important class is shed tenth by tenth, then the next, and
// the one that is never shed is not.
func TestShedByClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShedDesk(t, shedRules)
		about := func(what string, got, want int) {
			t.Helper()
			if got < want-50 || got > want+50 || want == 0 && got > 0 || want == 1000 && got < 1000 {
				t.Errorf("%d of 1000 %s are shed, want about %d", got, what, want)
			}
		}
		d.press("cpu", 0.7, 5*time.Second)
		about("at rest", d.shed("GET /"), 0)
		d.press("cpu", 0.9, 3050*time.Millisecond)
		about("rest after three seconds", d.shed("GET /"), 300)
		about("paying after three seconds", d.shed("GET /", "plan", "pro"), 0)
		d.press("cpu", 0.9, 12*time.Second)
		about("rest after fifteen seconds", d.shed("GET /"), 1000)
		about("paying after fifteen seconds", d.shed("GET /", "plan", "pro"), 500)
		d.press("cpu", 1, time.Minute)
		about("paying in the end", d.shed("GET /", "plan", "pro"), 1000)
		about("critical in the end", d.shed("POST /charges"), 0)
		about("exempt in the end", d.shed("GET /healthz"), 0)
		if is := d.live.Set().Shedding(); len(is) != 1 || is[0].Steps != 20 || is[0].Most != 20 || is[0].Class != "paying" || is[0].Share != 1 || is[0].Rule != ShedRule || is[0].Ups != 20 {
			t.Errorf("shedding is %+v", is)
		}
		d.press("cpu", 0.2, 101*time.Second)
		about("rest when it is over", d.shed("GET /"), 0)
		want := []string{ShedRule + " 1/20 rest 0.1", ShedRule + " 11/20 paying 0.1", ShedRule + " 20/20 paying 1.0", ShedRule + " 0/20  0.0"}
		for i, at := range []int{0, 10, 19, 39} {
			if len(d.told) != 40 || d.told[at] != want[i] {
				t.Fatalf("told of %q, want %q as number %d of 40", d.told, want[i], at)
			}
		}
	})
}

// A list is enough by one of it, and what is not known never sheds.
func TestShedSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShedDesk(t, shedRules)
		d.press("inflight", 2001, 3*time.Second)
		if n := d.shed("GET /"); n == 0 {
			t.Error("the second of the list does nothing")
		}
		time.Sleep(2 * PushedLasts) // and nobody pushes
		if n := d.shed("GET /"); n != 0 {
			t.Errorf("%d are shed by a value that has run out", n)
		}
		d.press("memory", 1, 10*time.Second)
		d.press("load", 1e9, 10*time.Second)
		if n := d.shed("GET /"); n != 0 {
			t.Errorf("%d are shed by signals that are not in the list", n)
		}
		none := parse(t, shedRules, Config{})
		for range 100 {
			time.Sleep(time.Second)
			if checks := none.Match(as("GET /", "ip", "192.0.2.1", "user", "1"), nil); len(checks) != 1 {
				t.Fatalf("without signals: %s", show(checks))
			}
		}
	})
}

// The same clients are shed on every node, in every release, and first shed are last admitted.
func TestShedClientsAreTheSame(t *testing.T) {
	for key, want := range map[string]int{"192.0.2.1": 3, "alice": 8, "": 3} {
		if got := tenthOf(key); got != want {
			t.Errorf("%q is in the tenth %d, and was in %d in all releases before", key, got, want)
		}
	}
	var counts [shedSteps]int
	for i := range 10_000 {
		counts[tenthOf(fmt.Sprint("client ", i))]++
	}
	for tenth, n := range counts {
		if n < 850 || n > 1150 {
			t.Errorf("%d of 10000 clients are in the tenth %d", n, tenth)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		one, other := newShedDesk(t, shedRules), newShedDesk(t, strings.Replace(shedRules, "name: api", "name: another", 1))
		both := func(cpu float64, lasts time.Duration) {
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				for _, d := range []*shedDesk{one, other} {
					_ = d.signals.Push("cpu", cpu)
					d.ask(as("GET /", "ip", "192.0.2.1"))
				}
			}
		}
		before := make(map[string]bool)
		for steps := 1; steps <= shedSteps; steps++ {
			both(1, time.Second)
			for i := range 200 {
				ip := fmt.Sprint("203.0.113.", i)
				r := as("GET /", "ip", ip, "user", fmt.Sprint(i))
				shed := !one.ask(r).OK
				other.ask(r) // so that both look at the same time
				if before[ip] && !shed {
					t.Fatalf("%s was shed at %d steps, and is not at %d", ip, steps-1, steps)
				}
				before[ip] = shed
			}
		}
		both(0.1, 21*time.Second)
		shed := 0
		for i := range 200 {
			r := as("GET /", "ip", fmt.Sprint("203.0.113.", i), "user", fmt.Sprint(i))
			a, b := one.ask(r).OK, other.ask(r).OK
			if a != b {
				t.Errorf("client %d: admitted by one node %t, by the other %t", i, a, b)
			}
			if !a {
				shed++
			}
		}
		if shed < 60 || shed > 180 {
			t.Errorf("%d of 200 are shed after four steps down", shed)
		}
	})
}

// A rule sheds by whom it counts, and by address where it counts all as one. What is shed is charged
// nothing.
func TestShedOfARule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShedDesk(t, `
identify: { user: jwt.sub }
rules:
  - { name: search, match: /search, per: user, limits: 5/hour, shed: { while: load > 4 } }
  - { name: all, match: /all, per: everyone, limits: 1000000/hour, shed: { while: load > 4 } }
  - { name: other, match: /other, per: user, limits: 1000000/hour }
`)
		push := func(value float64, lasts time.Duration) {
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				_ = d.signals.Push("load", value)
				d.live.Set().Shedding()
			}
		}
		push(5, 5050*time.Millisecond)
		byUser, byAddress := 0, 0
		for i := range 200 {
			user := fmt.Sprint("user", i)
			if !d.ask(as("GET /search", "user", user, "ip", "192.0.2.1")).OK {
				byUser++
			}
			if !d.ask(as("GET /all", "user", "one", "ip", fmt.Sprint("203.0.113.", i))).OK {
				byAddress++
			}
		}
		if byUser < 60 || byUser > 140 || byAddress < 60 || byAddress > 140 {
			t.Errorf("of 200, %d users and %d addresses are shed at half", byUser, byAddress)
		}
		if n := d.shed("GET /other"); n != 0 {
			t.Errorf("%d of another rule are shed", n)
		}
		push(5, 10*time.Second)
		for range 20 {
			if got := d.ask(as("GET /search", "user", "greedy", "ip", "192.0.2.1")); got.OK || !got.Limit.Sheds() {
				t.Fatalf("at all steps: %+v", got)
			}
		}
		push(0, time.Minute)
		for i := range 5 {
			if got := d.ask(as("GET /search", "user", "greedy", "ip", "192.0.2.1")); !got.OK {
				t.Errorf("request %d after the load: what was shed was charged: %+v", i, got)
			}
		}
	})
}

// An access rule goes before shedding: a banned client is not told to come back.
func TestShedAndDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newShedDesk(t, "rules: [{ name: banned, when: { method: DELETE }, deny: true }]\nshed: { while: cpu > 80% }")
		d.press("cpu", 1, 20*time.Second)
		if got := d.ask(as("DELETE /", "ip", "192.0.2.1")); got.OK || !got.Never || got.Limit.Name != "banned" {
			t.Errorf("a denied request is told %+v", got)
		}
		if got := d.gate.Peek(t.Context(), as("GET /", "ip", "192.0.2.1")); got.OK || got.RetryAfter == 0 {
			t.Errorf("a peek says %+v", got)
		}
	})
}

// A request counts once as shed, however many readings its path has, and not if an access rule refuses
// it.
func TestShedIsCountedOnce(t *testing.T) {
	f := func(mode, line string, counts int64, shadows int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := newShedDesk(t, `
shed: { while: cpu > 80%, mode: `+mode+` }
rules:
  - { name: banned, match: /banned/, deny: true }
  - { name: tried, match: /tried/, deny: true, mode: shadow }
  - { name: each, match: "/users/{id}", per: ip, limits: 1000000/hour, shed: { while: cpu > 80%, mode: `+mode+` } }
`)
			over := 0
			d.gate = d.gate.Observe(func(_ *tidegate.Request, checks []tidegate.Check, _ tidegate.Decision) {
				for _, c := range checks {
					if c.Over && c.Limit.Name != "tried" {
						over++
					}
				}
			})
			for range 200 {
				_ = d.signals.Push("cpu", 1)
				d.live.Set().Shedding()
				time.Sleep(100 * time.Millisecond)
			}
			before := d.live.Set().Shedding()
			d.ask(as(line, "ip", "192.0.2.1"))
			for range 3 { // who only looks is not counted
				d.gate.Peek(t.Context(), as(line, "ip", "192.0.2.1"))
				d.gate.PeekEach(t.Context(), as(line, "ip", "192.0.2.1"), func(tidegate.Check, tidegate.Decision) {})
			}
			for i, is := range d.live.Set().Shedding() {
				if got := is.Requests - before[i].Requests; got != counts && !(is.Rule == "each" && !strings.Contains(line, "/users/") && got == 0) {
					t.Errorf("%s, %s: %d are counted by %s, want %d", mode, line, got, is.Rule, counts)
				}
			}
			if over != shadows {
				t.Errorf("%s, %s: %d would have been shed, want %d", mode, line, over, shadows)
			}
		})
	}
	for _, path := range []string{"/a", "/tried/a", "/a;b/c", "/a%252fb"} {
		f("enforce", "GET "+path, 1, 0)
		f("shadow", "GET "+path, 1, 1)
	}
	f("enforce", "GET /users/7", 1, 0)
	f("enforce", "GET /users/7;a", 1, 0)
	f("shadow", "GET /users/7", 1, 2)
	f("shadow", "GET /users/7;a", 1, 2)
	for _, mode := range []string{"enforce", "shadow"} {
		f(mode, "GET /banned/a", 0, map[string]int{"enforce": 0, "shadow": 1}[mode])
		f(mode, "GET /banned;b/x;y", 0, map[string]int{"enforce": 0, "shadow": 1}[mode])
	}
}
