package rules

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// sharedCase is a rule with an algorithm written in every place that a limit can be in.
type sharedCase struct {
	mode      string // of consistency; "" means nothing is said
	byDefault bool
	algorithm string // "" means none is written
	events    int
	queue     bool
}

func (c sharedCase) source() string {
	limit := func(events int, per string) string {
		if c.algorithm == "" {
			return fmt.Sprintf("%d/%s", events, per)
		}
		return fmt.Sprintf("{ rate: %d/%s, algorithm: %s }", events, per, c.algorithm)
	}
	var top, own, queue string
	switch {
	case c.mode == "":
	case c.byDefault:
		top = "defaults: { consistency: " + c.mode + " }\n"
	default:
		own = ", consistency: " + c.mode
	}
	if c.queue {
		queue = ", queue: { places: 3, max_wait: 1s }"
	}
	from := "{ from: header X-Rpm, per: day, max: " + fmt.Sprint(c.events) + ", else: 1"
	if c.algorithm != "" {
		from += ", algorithm: " + c.algorithm
	}
	return top + "identify: { user: client header X-User, plan: header X-Plan, model: header X-Model }\n" +
		"tiers: { free: { limits: " + limit(c.events, "minute") + " }, pro: { limits: " + limit(c.events+1, "minute") + ", quota: { amount: 9/month, anchor: header X-Since } } }\n" +
		"rules:\n" +
		"  - { name: plain, per: user, limits: [" + limit(c.events, "minute") + ", " + from + " }], quota: 100/month, concurrency: { slots: 3, lease: 30s }, block: 15m, " +
		"candidate: " + limit(c.events+2, "hour") + ", for: [{ when: { user: bob }, limits: " + limit(c.events+3, "minute") + " }]" + queue + own + " }\n" +
		"  - { name: soft, per: user, limits: " + limit(c.events, "minute") + ", over: { soft: 50% }" + queue + own + " }\n" +
		"  - { name: elastic, per: user, limits: " + limit(c.events, "minute") + ", over: { elastic: { while: cpu < 80%, up_to: 2x } }" + queue + own + " }\n" +
		"  - { name: tiered, per: user, tier: { from: plan, else: free }" + queue + own + " }\n" +
		"  - { name: tabled, per: [user, model], limits: { by: model, rows: { large: " + limit(c.events, "minute") + " }, else: " + limit(c.events+4, "minute") + " }" + queue + own + " }\n" +
		"  - { name: tried, per: user, limits: " + limit(c.events, "minute") + ", mode: shadow" + queue + own + " }\n"
}

// want is the algorithm and the consistency that limits of the rules must have, by role.
func (c sharedCase) want(l *tidegate.Limit) (tidegate.Algorithm, tidegate.Consistency) {
	shared := tidegate.Strict
	switch {
	case strings.Contains(c.mode, "leased"):
		shared = tidegate.Leased
	case strings.Contains(c.mode, "split"):
		shared = tidegate.Split
	case strings.Contains(c.mode, "eventual"):
		shared = tidegate.Eventual
	}
	if c.queue {
		shared = tidegate.Strict
	}
	algorithm := l.Algorithm
	switch {
	case l.Terms.Role == tidegate.Blocks:
		return tidegate.SlidingLog, tidegate.Strict
	case algorithm == tidegate.Quota:
		return algorithm, shared
	case algorithm == tidegate.Concurrency:
		return algorithm, tidegate.Strict
	case c.algorithm != "":
		algorithm, _ = tidegate.ParseAlgorithm(c.algorithm)
	case shared == tidegate.Eventual:
		algorithm = tidegate.SubWindows
	case shared != tidegate.Strict:
		algorithm = tidegate.TokenBucket
	case c.events > tidegate.AutoLogEvents:
		algorithm = tidegate.SubWindows
	default:
		algorithm = tidegate.SlidingLog
	}
	suits := algorithm == tidegate.FixedWindow
	if shared == tidegate.Eventual {
		suits = suits || algorithm == tidegate.SubWindows || algorithm == tidegate.SlidingWindow
	} else {
		suits = suits || algorithm == tidegate.TokenBucket
	}
	if !suits {
		shared = tidegate.Strict
	}
	return algorithm, shared
}

// One word suffices: whatever the algorithm, wherever the limit is written and whether the
// rule or the file says it, limits that can be shared so are, and the others are strict.
func TestConsistencyReachesEveryLimit(t *testing.T) {
	for i, mode := range []string{"", "strict", "leased", "split", "eventual", "{ mode: leased, deny_cache: false }", "{ mode: split, coalesce: false }", "{ deny_cache: false }"} {
		for _, byDefault := range []bool{false, true} {
			for j, algorithm := range []string{"", "token_bucket", "leaky_bucket", "fixed_window", "sliding_log", "sliding_window", "sub_windows"} {
				if testdep.RaceEnabled && (i+j)%3 > 0 {
					continue
				}
				for _, events := range []int{2, 50, 500} {
					for _, queue := range []bool{false, true} {
						if algorithm == "leaky_bucket" && !queue {
							continue // it makes requests wait
						}
						sharedCase{mode, byDefault, algorithm, events, queue}.run(t)
					}
				}
			}
		}
	}
}

func (c sharedCase) run(t *testing.T) {
	t.Helper()
	set := parse(t, c.source(), Config{Signals: signals{"cpu": 0.1}})
	seen := make(map[tidegate.Role]int)
	names := make(map[string]bool)
	for _, who := range [][]string{{"user", "ann"}, {"user", "bob", "model", "large"}, {"user", "eve", "plan", "pro"}} {
		r := as("GET /", who...)
		r.Values.(identified).values["header X-Rpm"], r.Values.(identified).values["header X-Since"] = "2", "7"
		for _, check := range set.Match(r, nil) {
			l := check.Limit
			seen[l.Terms.Role]++
			names[l.Name+l.Algorithm.String()] = true
			// That of a candidate is for itself.
			wanted := c
			if strings.HasSuffix(l.Scope, "#candidate") {
				wanted.events += 2
			}
			algorithm, shared := wanted.want(l)
			if l.Algorithm != algorithm || l.Terms.Handling.Consistency != shared {
				t.Errorf("%+v: %s of %s, %s, is %s; want %s %s", c, l, roleTexts[l.Terms.Role], l.Scope, l.Terms.Handling.Consistency, algorithm, shared)
			}
			if denies := strings.Contains(c.mode, "deny_cache"); l.Terms.Handling.NoDenyCache != denies {
				t.Errorf("%+v: %s: no deny cache is %v", c, l, l.Terms.Handling.NoDenyCache)
			}
		}
		agree(t, set, r)
	}
	if len(seen) != 4 || len(names) < 8 {
		t.Fatalf("%+v: only %v, %v were held to: the test has lost its point", c, seen, names)
	}
}

// Counters that are split or eventual are apart from those in the shared store, so that a change of
// consistency refills nobody: the old ones are asked where they are.
func TestChangeOfConsistencyKeepsThePlace(t *testing.T) {
	buckets, windows := []string{"token_bucket", "fixed_window"}, []string{"fixed_window", "sub_windows", "sliding_window"}
	for _, change := range []struct {
		old, new, want string
		by             []string
	}{
		{"strict", "split", "split, strict", buckets},
		{"leased", "split", "split, leased", buckets},
		{"split", "leased", "leased, split", buckets},
		{"split", "strict", "strict, split", buckets},
		{"strict", "leased", "leased", buckets},
		{"leased", "strict", "strict", buckets},
		{"strict", "eventual", "eventual, strict", windows},
		{"eventual", "strict", "strict, eventual", windows},
		{"split", "eventual", "eventual, split", windows[:1]},
	} {
		for _, algorithm := range change.by {
			rule := func(mode string) string {
				return rulesOf("limits: { rate: 10/minute, algorithm: " + algorithm + " }, consistency: " + mode)
			}
			d := newDesk(t, rule(change.old))
			d.admits(10, as("GET /", "user", "ann"))
			d.reload(rule(change.new))
			var got []string
			for _, c := range d.live.Match(as("GET /", "user", "ann"), nil) {
				got = append(got, c.Limit.Terms.Handling.Consistency.String())
			}
			if strings.Join(got, ", ") != change.want {
				t.Errorf("%s to %s by %s: held to %s", change.old, change.new, algorithm, got)
			}
			d.refuses(as("GET /", "user", "ann"))
			d.wait(2 * time.Minute)
			d.passes(10, as("GET /", "user", "ann"))
		}
	}
}

// Explain says how the counter is shared, what that means, and why the algorithm is what it is.
func TestExplainShared(t *testing.T) {
	f := func(top, terms string, want ...string) {
		t.Helper()
		set := parse(t, top+"\nidentify: { user: client header X-User }\nrules: [{ name: a, per: user, "+terms+" }]", Config{})
		var got []string
		for _, c := range set.Explain(as("GET /", "user", "ann")).Rules[0].Checks {
			text := c.Algorithm
			if c.Consistency != "" {
				text += " " + c.Consistency + ": " + c.Shared
			}
			got = append(got, text)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s %s:\n%s\nwant\n%s", top, terms, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	f("", "limits: 20000/second", "sub_windows")
	f("", "limits: 20000/second, consistency: strict", "sub_windows")
	f("", "limits: 2/second, consistency: eventual",
		"sub_windows eventual: each instance decides by itself; counts are exchanged every 100ms; sub_windows because of `consistency: eventual`, as no algorithm is written")
	f("", "limits: { rate: 2/second, algorithm: token_bucket }, consistency: eventual", "token_bucket strict: token_bucket cannot be eventual")
	f("", "limits: 20000/second, consistency: leased",
		"token_bucket leased: taken ahead 2,000 at a time at most, used within 100ms; token_bucket because of `consistency: leased`, as no algorithm is written")
	f("", "limits: { rate: 20000/second, burst: 1000 }, consistency: leased",
		"token_bucket leased: taken ahead 500 at a time at most, used within 25ms; token_bucket because of `consistency: leased`, as no algorithm is written")
	f("instances: 3", "limits: { rate: 20000/second, algorithm: fixed_window }, consistency: leased",
		"fixed_window leased: taken ahead 2,000 at a time at most, used within 100ms")
	f("", "limits: { rate: 20000/second, burst: 500, algorithm: token_bucket }, consistency: leased",
		"token_bucket strict: not leased: leases last at least 20ms, for which a burst of 800 is needed, and it has 500")
	f("instances: 5", "limits: { rate: 60/second, algorithm: token_bucket }, quota: 1000/month, consistency: split",
		"token_bucket split: each of 5 instances has 12/second of 60/second", "quota split: each of 5 instances has 200/month of 1,000/month")
	f("instances: 5", "limits: { rate: 3/90s, algorithm: fixed_window }, consistency: split",
		"fixed_window split: each of 5 instances has 0.6/1m30s of 3/1m30s")
	f("", "limits: 60/second, consistency: split",
		"token_bucket split: each instance has its share of 60/second, by how many there are; token_bucket because of `consistency: split`, as no algorithm is written")
	f("", "limits: { rate: 60/second, algorithm: sliding_log }, consistency: leased", "sliding_log strict: sliding_log cannot be leased")
	f("defaults: { consistency: split }", "concurrency: { slots: 3, lease: 30s }", "concurrency strict: concurrency cannot be split")
	f("defaults: { consistency: leased }", "limits: 500/second, queue: { places: 3, max_wait: 1s }", "sub_windows strict: requests that wait for their turn cannot be leased")
	f("", "limits: 7/second, block: 1m, candidate: 70/second, over: { soft: 50% }, consistency: split", "sliding_log",
		"token_bucket split: each instance has its share of 7/second, by how many there are; token_bucket because of `consistency: split`, as no algorithm is written",
		"token_bucket split: each instance has its share of 10/second, by how many there are; token_bucket because of `consistency: split`, as no algorithm is written",
		"token_bucket split: each instance has its share of 70/second, by how many there are; token_bucket because of `consistency: split`, as no algorithm is written")
}

// What refuses without counting has no counter to share, and explain does not say that it cannot be.
func TestExplainSharedOfRefusals(t *testing.T) {
	for _, mode := range []string{"strict", "leased", "split", "eventual"} {
		for _, shadow := range []string{"enforce", "shadow"} {
			set := parse(t, `
defaults: { consistency: `+mode+` }
identify: { user: client header X-User }
rules:
  - { name: denies, deny: true, mode: `+shadow+` }
  - { name: refuses, per: user, missing: refuse, limits: 500/second, mode: `+shadow+` }
  - { name: sheds, per: user, limits: 500/second, shed: { while: cpu > 10% }, mode: `+shadow+` }
`, Config{Signals: signals{"cpu": 1}})
			set.shedders[0].steps.Store(shedSteps) // everything
			set.shedders[0].due.Store(math.MaxInt64)
			found := 0
			for _, r := range set.Explain(as("GET /", "ip", "192.0.2.1")).Rules {
				for _, c := range r.Checks {
					if c.Check.Limit.Algorithm != tidegate.Deny {
						continue
					}
					found++
					if c.Consistency != "" || c.Shared != "" {
						t.Errorf("%s, %s: %s is explained as %s: %s", mode, shadow, r.Name, c.Consistency, c.Shared)
					}
				}
			}
			if found != 3 {
				t.Errorf("%s, %s: %d checks refuse, want 3", mode, shadow, found)
			}
		}
	}
}
