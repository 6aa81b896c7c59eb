package rulefile

import (
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// oneRule reads a file with one rule a, counted per user.
func oneRule(t *testing.T, rest string) *Rule {
	t.Helper()
	src := "version: 1\nidentify: { user: jwt.sub, role: jwt.role }\nrules:\n  - name: a\n    per: user\n"
	for line := range strings.Lines(rest) {
		src += "    " + line
	}
	f, problems := Parse("rules.yaml", []byte(src), Options{Now: today})
	if problems.HasErrors() {
		t.Fatalf("%s\n%s", src, problems.Error())
	}
	return f.Rules[0]
}

// An upgrade from 10 to 1000 a minute must not begin a new counter.
func TestAlgorithmOfAllBranches(t *testing.T) {
	f := func(rest string, want ...tidegate.Algorithm) {
		t.Helper()
		r := oneRule(t, rest)
		got := []tidegate.Algorithm{r.Terms.Limits.All[0].Spec.Algorithm}
		for _, b := range r.For {
			got = append(got, b.Terms.Limits.All[0].Spec.Algorithm)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: got %v", rest, got)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: got %v, want %v", rest, got, want)
			}
		}
	}
	f("limits: 64/minute", tidegate.SlidingLog)
	f("limits: 65/minute", tidegate.SubWindows)
	f("limits: 10/minute\nfor: [{ when: { role: x }, limits: 20/minute }]", tidegate.SlidingLog, tidegate.SlidingLog)
	f("limits: 10/minute\nfor: [{ when: { role: x }, limits: 1000/60s }]", tidegate.SubWindows, tidegate.SubWindows)
	f("limits: 10/minute\nfor: [{ when: { role: x }, limits: 1000/hour }]", tidegate.SlidingLog, tidegate.SubWindows)
	f("limits: 10/minute\nfor: [{ when: { role: x }, limits: { rate: 1000/minute, algorithm: token_bucket } }]", tidegate.SlidingLog, tidegate.TokenBucket)
	f("limits: 10/minute\nfor: [{ when: { role: x }, limits: { from: jwt.rpm, per: minute, max: 100, else: 5 } }]", tidegate.SubWindows, tidegate.SubWindows)
	f("limits: { rate: 10/minute, ceiling: true }", tidegate.SubWindows)
	// On the day after, the counters are still those of the day before.
	f("limits: 10/minute\nfor: [{ when: { role: x }, limits: 1000/minute, until: 2026-05-31T00:00:00Z }]", tidegate.SubWindows)
}

func TestUntil(t *testing.T) {
	const rest = "limits: 10/minute\nfor: [{ when: { role: x }, limits: 1000/minute, until: 2026-06-01T12:00:00Z }]"
	src := "version: 1\nidentify: { role: jwt.role }\nrules:\n  - name: a\n    per: ip\n    " + strings.Replace(rest, "\n", "\n    ", 1)
	f := func(at time.Time, branches, warnings int) {
		t.Helper()
		file, problems := Parse("rules.yaml", []byte(src), Options{Now: func() time.Time { return at }})
		if len(file.Rules[0].For) != branches || len(problems) != warnings || problems.HasErrors() {
			t.Errorf("at %s: %d branches, problems %v", at, len(file.Rules[0].For), problems)
		}
	}
	end := today()
	f(end.Add(-1), 1, 0)
	f(end, 0, 1)
}

func TestUnder(t *testing.T) {
	r := oneRule(t, `limits: { rate: 50/second, algorithm: leaky_bucket }
queue: { places: 100, max_wait: 2s }
cost: 2
for:
  - { when: { role: a }, queue: { places: 7, max_wait: 1s } }
  - { when: { role: b }, limits: unlimited, quota: 5/day }
  - { when: { role: c }, limits: { rate: 9/second, algorithm: leaky_bucket }, over: { soft: 50% } }
`)
	own, a, b, c := r.Under(nil), r.Under(&r.For[0]), r.Under(&r.For[1]), r.Under(&r.For[2])
	want(t, "the rule's own line", own.Limits.All[0].Spec.Burst, 100)
	want(t, "the line of a", a.Limits.All[0].Spec.Burst, 7)
	want(t, "the rate of a", a.Limits.All[0].Spec.Events, 50)
	want(t, "the cost of a", a.Cost.Fixed, 2)
	want(t, "b is unlimited", b.Limits.Unlimited, true)
	want(t, "the quota of b", b.Quota.Spec.Events, 5)
	want(t, "the line of c", c.Limits.All[0].Spec.Burst, 100)
	want(t, "the rule's line after that", r.Terms.Limits.All[0].Spec.Burst, 100)
}

// A bucket that is refilled at once is a fixed window of its rate.
func TestRefillAtOnce(t *testing.T) {
	window := tidegate.Spec{Events: 4, Period: time.Minute, Algorithm: tidegate.FixedWindow}
	for _, limits := range []string{
		"{ rate: 4/minute, refill: at_once }",
		"{ rate: 4/minute, algorithm: token_bucket, refill: at_once }",
		"{ rate: 4/minute, burst: 4, refill: at_once }",
		"{ from: jwt.rpm, per: minute, max: 100, else: 4, refill: at_once }",
	} {
		want(t, limits, oneRule(t, "limits: "+limits+"\n").Terms.Limits.All[0].Spec, window)
	}
}

func TestCeiling(t *testing.T) {
	f := func(o Over, s, want tidegate.Spec) {
		t.Helper()
		if got := o.Ceiling(s); got != want {
			t.Errorf("%+v of %+v: %+v, want %+v", o, s, got, want)
		}
	}
	soft := Over{Soft: 10}
	f(soft, tidegate.Spec{Events: 100}, tidegate.Spec{Events: 110})
	f(soft, tidegate.Spec{Events: 99}, tidegate.Spec{Events: 108})
	f(soft, tidegate.Spec{Events: 9}, tidegate.Spec{Events: 9})
	f(soft, tidegate.Spec{Events: 10}, tidegate.Spec{Events: 11})
	f(Over{Elastic: &Elastic{UpTo: 1.1}}, tidegate.Spec{Events: 3}, tidegate.Spec{Events: 3})
	// Rounded down, never more, never less by one.
	for _, percent := range []int{1, 7, 10, 29, 33, 50, 99, 100, 250, 1000} {
		for n := range int64(2000) {
			if n++; (&Over{Soft: percent}).Ceiling(tidegate.Spec{Events: n}).Events != n+n*int64(percent)/100 {
				t.Errorf("%d%% more than %d is not rounded down", percent, n)
			}
		}
	}
	f(soft, tidegate.Spec{Events: 100, Algorithm: tidegate.TokenBucket, Burst: 20}, tidegate.Spec{Events: 110, Algorithm: tidegate.TokenBucket, Burst: 22})
	f(soft, tidegate.Spec{Events: 100, Algorithm: tidegate.LeakyBucket, Burst: 20}, tidegate.Spec{Events: 110, Algorithm: tidegate.LeakyBucket, Burst: 20})
	f(Over{Elastic: &Elastic{UpTo: 1.5}}, tidegate.Spec{Events: 7}, tidegate.Spec{Events: 10})
}

// What is missing is decided by what a name stands for.
func TestMissing(t *testing.T) {
	f := func(identity string, want Missing) {
		t.Helper()
		src := "version: 1\nidentify: { who: " + identity + " }\nrules:\n  - { name: a, per: [who, ip], limits: 5/minute }"
		file, problems := Parse("rules.yaml", []byte(src), Options{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := file.Rules[0]; got.Missing != want || got.HasMissing {
			t.Errorf("%s: %d, said %v, want %d", identity, got.Missing, got.HasMissing, want)
		}
	}
	f("jwt.sub", MissingIP)
	f("client header X-User", MissingIP)
	f("descriptor", MissingSkip)
	f("descriptor user", MissingSkip)
	f("[jwt.sub, descriptor user]", MissingIP)
}
