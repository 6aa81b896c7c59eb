package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/dev/testdep"
)

// kinds of limits that a rule can have, each with numbers N to be filled in, and what an
// override of it is written as.
var limitKinds = []struct{ name, limit, order string }{
	{"auto small", "limits: N/minute", "N/minute"},
	{"auto large", "limits: N000/minute", "N000/minute"},
	{"token_bucket", "limits: { rate: N/minute, algorithm: token_bucket }", "N/minute"},
	{"burst", "limits: { rate: N/minute, algorithm: token_bucket, burst: N }", "N/minute"},
	{"leaky_bucket", "limits: { rate: N/minute, algorithm: leaky_bucket }, queue: { places: 5, max_wait: 2s }", "N/minute"},
	{"fixed_window", "limits: { rate: N/minute, algorithm: fixed_window }", "N/minute"},
	{"sliding_log", "limits: { rate: N/minute, algorithm: sliding_log }", "N/minute"},
	{"sliding_window", "limits: { rate: N/minute, algorithm: sliding_window }", "N/minute"},
	{"sub_windows", "limits: { rate: N/minute, algorithm: sub_windows, parts: 6 }", "N/minute"},
	{"leased", "limits: N00/second, consistency: leased", "N00/second"},
	{"split", "limits: N00/second, consistency: split", "N00/second"},
	{"quota", "quota: { amount: N/month, zone: Asia/Seoul, anchor: 5 }", "N/month"},
	{"slots", "concurrency: { slots: N, lease: 30s }", "N slots"},
	{"queued", "limits: { rate: N/minute, algorithm: sliding_log }, queue: { places: 5, max_wait: 2s }", "N/minute"},
	{"soft", "limits: N/minute, over: { soft: 100% }", "N/minute"},
	{"cost", "limits: N/minute, cost: 2", "N/minute"},
}

// combination is what may be said about one request.
type combination struct {
	kind                                  int
	mode                                  string // of the rule
	block, candidate                      bool
	tier, branch                          bool
	override                              string // "", more, unlimited
	exempt, deny, denyTried, ban, ruleBan bool
}

func with(text string, n int) string { return strings.ReplaceAll(text, "N", fmt.Sprint(n)) }

// rules are those of the combination: the rule itself has 10, the tier 20, the branch 30.
func (c *combination) rules() string {
	k := limitKinds[c.kind]
	terms := func(n int) string { // what a tier or branch may say
		if base, _, has := strings.Cut(with(k.limit, n), ", consistency"); has {
			return base
		}
		return with(k.limit, n)
	}
	var b strings.Builder
	b.WriteString("version: 1\nidentify: { user: header X-User, plan: header X-Plan }\n")
	if c.exempt {
		b.WriteString("exempt: [{ match: /x }]\n")
	}
	if c.tier {
		fmt.Fprintf(&b, "tiers: { free: { %s }, pro: { %s } }\n", terms(10), terms(20))
	}
	fmt.Fprintf(&b, "rules:\n  - { name: api, per: user, %s, mode: %s", with(k.limit, 10), c.mode)
	if c.block {
		b.WriteString(", block: 10m")
	}
	if c.candidate {
		b.WriteString(", candidate: 3/minute")
	}
	if c.tier {
		b.WriteString(", tier: { from: plan, else: free }")
	}
	if c.branch {
		fmt.Fprintf(&b, ", for: [{ when: { user: ann }, %s }]", terms(30))
	}
	b.WriteString(" }\n")
	if c.deny {
		b.WriteString("  - { name: no, when: { user: ann }, deny: true }\n")
	}
	if c.denyTried {
		b.WriteString("  - { name: tried, when: { user: ann }, deny: true, mode: shadow }\n")
	}
	return b.String()
}

func (c *combination) measures() (all []Measure) {
	switch c.override {
	case "more":
		all = append(all, override("o", "user=ann", "api", with(limitKinds[c.kind].order, 40)))
	case "unlimited":
		all = append(all, override("o", "user=ann", "api", "unlimited"))
	}
	if c.ban {
		all = append(all, ban("b", "user=ann", ""))
	}
	if c.ruleBan {
		all = append(all, ban("rb", "user=ann", "api"))
	}
	return all
}

// number is how many the rule admits: what beats what, once more.
func (c *combination) number() int {
	switch {
	case c.override == "more":
		return 40
	case c.override == "unlimited":
		return 0
	case c.branch:
		return 30
	case c.tier:
		return 20
	}
	return 10
}

// check holds what a request is held to against the combination.
func (c *combination) check(t *testing.T, live, plain *Live) {
	t.Helper()
	r := request("GET /x", "header X-User", "ann", "header X-Plan", "pro")
	got := live.Match(r, nil)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%+v: %s, held to\n%s", *c, fmt.Sprintf(format, args...), show(got))
	}
	if c.ban || c.ruleBan {
		want := BanRule
		if !c.ban {
			want = "api"
		}
		if len(got) != 1 || got[0].Limit.Algorithm != tidegate.Deny || got[0].Limit.Terms.Rule != want || got[0].Advisory || got[0].Limit.Terms.Role != tidegate.Decides {
			fail("want the ban of %s alone", want)
		}
		return
	}
	denied, tried, decides, blocks, candidates := 0, 0, []tidegate.Check(nil), 0, 0
	for _, one := range got {
		switch {
		case one.Limit.Terms.Rule == "no":
			denied++
		case one.Limit.Terms.Rule == "tried":
			tried++
		case strings.HasSuffix(one.Limit.Scope, "#candidate"):
			candidates++
		case one.Limit.Terms.Role == tidegate.Blocks:
			blocks++
		case one.Limit.Terms.Role == tidegate.Marks || strings.HasSuffix(one.Limit.Scope, "#nominal"):
		default:
			decides = append(decides, one)
		}
	}
	if denied != b2i(c.deny) || tried != b2i(c.denyTried) {
		fail("%d deny, and %d try to", denied, tried)
	}
	if c.exempt {
		if len(decides)+blocks+candidates > 0 {
			fail("exempt")
		}
		return
	}
	enforced := c.mode == "enforce"
	if candidates != b2i(c.candidate) || blocks != b2i(c.block && enforced && c.override != "unlimited") {
		fail("%d candidates, %d blocks", candidates, blocks)
	}
	if c.override == "unlimited" {
		if len(decides) > 0 {
			fail("not unlimited")
		}
		return
	}
	before := plain.Match(r, nil)
	if len(decides) != 1 || decides[0].Advisory == enforced {
		fail("want one limit")
		return
	}
	is := decides[0].Limit
	events := is.Events
	if limitKinds[c.kind].name == "soft" {
		events /= 2
	}
	if unit := events / int64(c.number()); events%int64(c.number()) != 0 || unit != 1 && unit != 100 && unit != 1000 {
		fail("%d events, want %d", events, c.number())
	}
	if is.Algorithm == tidegate.TokenBucket && is.Burst != is.Events {
		fail("a burst of %d", is.Burst)
	}
	if sameCounter(before, decides[0].Key, decides[0].Limit.Identity()) == nil {
		fail("another counter than\n%s", show(before))
	}
	for _, was := range before { // what the override does not name is as it was
		if was.Limit.Identity() == is.Identity() && (was.MaxWait > 0) != (decides[0].MaxWait > 0) {
			fail("waits up to %s, before %s", decides[0].MaxWait, was.MaxWait)
		}
		if was.Limit.Identity() == is.Identity() && (was.Cost != decides[0].Cost || was.Limit.Terms.Handling.Consistency != is.Terms.Handling.Consistency ||
			(was.Limit.Terms.Handling.Queue == nil) != (is.Terms.Handling.Queue == nil) || (was.Limit.Terms.AtEnd.Block == nil) != (is.Terms.AtEnd.Block == nil)) {
			fail("other terms than\n%s", show(before))
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A branch goes before a tier, an override before both, an exemption before these, an access
// rule before that, and a ban before everything, whatever the rule counts by and in whatever
// mode it is.
func TestPrecedenceOfMeasures(t *testing.T) {
	for kind := range limitKinds {
		hasLimits := strings.Contains(limitKinds[kind].limit, "limits:")
		for bits := range 1 << 7 {
			if testdep.RaceEnabled && bits%7 != kind%7 {
				continue
			}
			on := func(i int) bool { return bits>>i&1 == 1 }
			c := combination{
				kind: kind, mode: "enforce", block: on(0), candidate: on(1), tier: on(2), branch: on(3),
				exempt: on(4), deny: on(5), denyTried: on(5) != on(1),
			}
			if on(6) {
				c.mode = "shadow"
			}
			if !hasLimits && (c.block || c.candidate) {
				continue
			}
			set, err := Parse("rules.yaml", []byte(c.rules()), Config{})
			if err != nil {
				t.Fatalf("%v\n%s", err, c.rules())
			}
			for _, c.override = range []string{"", "more", "unlimited"} {
				for bans := range 4 {
					c.ban, c.ruleBan = bans&1 > 0, bans&2 > 0
					c.run(t, set)
				}
			}
			if t.Failed() {
				t.Fatal(c.rules())
			}
		}
	}
}

// run puts the measures of the combination in force beside set.
func (c *combination) run(t *testing.T, set *Set) {
	t.Helper()
	live := NewLive(set)
	for _, m := range c.measures() {
		if err := set.CheckMeasure(&m); err != nil {
			t.Fatalf("%+v: %v\n%s", *c, err, c.rules())
		}
	}
	if problems := live.SetMeasures(c.measures()); problems != nil {
		t.Fatal(problems)
	}
	c.check(t, live, NewLive(set))
}

// Of several overrides about one request, the most particular counts, then the latest.
func TestOverridesOfOneRequest(t *testing.T) {
	later := override("a-later", "user=42", "api", "3/minute")
	later.At = later.At.Add(time.Second)
	ended := override("ended", "user=42 plan=pro ip=192.0.2.7", "api", "1/minute")
	ended.Until = time.Now().Add(time.Hour)
	live := measured(t, measureRules,
		override("all", "everyone=", "api", "9/minute"),
		override("wide", "ip=192.0.2.0/24", "api", "8/minute"),
		override("narrow", "ip=192.0.2.0/28", "api", "7/minute"),
		override("six", "ip=2001:db8::/32", "api", "5/minute"),
		override("one", "user=42", "api", "4/minute"), later,
		override("two", "user=42 plan=pro", "api", "2/minute"), ended,
	)
	f := func(want int64, pairs ...string) {
		t.Helper()
		r := request("GET /api/", pairs...)
		if got := live.Match(r, nil)[0].Limit; got.Name != "api" || got.Events != want {
			t.Errorf("%v: %s, want %d", pairs, got, want)
		}
		if x := live.Explain(r).Rules[0]; x.Override == nil || x.Override.Limits[0] != fmt.Sprintf("%d/minute", want) {
			t.Errorf("%v: explained by %v", pairs, x.Override)
		}
	}
	f(9)
	f(9, "ip", "192.0.3.1")
	f(8, "ip", "192.0.2.16")
	f(7, "ip", "192.0.2.15")
	f(7, "ip", "::ffff:192.0.2.15")
	f(5, "ip", "2001:db8:1::/64", "addr", "2001:db8:1::5")
	f(3, "header X-User", "42")
	f(3, "header X-User", "42", "ip", "192.0.2.15")
	f(2, "header X-User", "42", "header X-Plan", "pro", "ip", "192.0.2.8")
	f(1, "header X-User", "42", "header X-Plan", "pro", "ip", "192.0.2.7")
}
