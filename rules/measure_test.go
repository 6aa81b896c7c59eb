package rules

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

const measureRules = `
identify:
  user: header X-User
  plan: header X-Plan
  account: lower trim body.email
  who: [header X-User, ip]
  net: ip /24 /48
  order: "path {id}"
tiers: { free: { limits: 10/minute }, pro: { limits: 100/minute } }
exempt: [{ match: /healthz }]
rules:
  - name: api
    match: /api/
    per: user
    tier: { from: plan, else: free }
    for: [{ when: { user: vip }, limits: 1000/minute }]
  - { name: orders, match: "/orders/{id}", per: [user, order], limits: 5/minute }
  - { name: login, match: POST /login, per: account, limits: 5/15m, block: 10m }
  - { name: plans, match: /plans, per: user, quota: { amount: 1000/month, zone: Asia/Seoul, anchor: 15 } }
  - { name: site, per: ip, limits: 20/second, quota: 5000/day, concurrency: { slots: 3, lease: 30s } }
  - { name: off, per: ip, limits: 1/minute, mode: disabled }
  - { name: denied, when: { user: eve }, deny: true }
`

// override makes one of "user=42 ip=192.0.2.7", rule and limits.
func override(id, who, rule string, limits ...string) Measure {
	return Measure{ID: id, Kind: Override, As: whom(who), Rule: rule, Limits: limits, Reason: "a test", By: "ann", At: time.Unix(1, 0)}
}

func ban(id, who, rule string) Measure {
	return Measure{ID: id, Kind: Ban, As: whom(who), Rule: rule, Reason: "a test", By: "ann", At: time.Unix(1, 0)}
}

func whom(who string) map[string]string {
	as := make(map[string]string)
	for _, part := range strings.Fields(who) {
		name, value, _ := strings.Cut(part, "=")
		as[name] = value
	}
	return as
}

// measured returns Live with measures in force that all hold.
func measured(t *testing.T, src string, all ...Measure) *Live {
	t.Helper()
	live := NewLive(parse(t, src, Config{}))
	for i := range all {
		if err := live.Set().CheckMeasure(&all[i]); err != nil {
			t.Fatalf("%s: %v", all[i].ID, err)
		}
	}
	if problems := live.SetMeasures(all); len(problems) > 0 {
		t.Fatal(problems)
	}
	return live
}

// liveHeldTo is heldTo for a Live.
func liveHeldTo(t *testing.T, live *Live) func(r *tidegate.Request, want ...string) {
	return func(r *tidegate.Request, want ...string) {
		t.Helper()
		got := show(live.Match(r, nil))
		if wanted := strings.Join(append(want, ""), "\n"); got != wanted {
			t.Errorf("%s %s%s %v is held to\n%swant\n%s", r.Method, r.Host, r.Path, r.Values, got, wanted)
		}
	}
}

// What is wrong with a measure is told in words, all at once, with what to write instead.
func TestCheckMeasure(t *testing.T) {
	set := parse(t, measureRules, Config{Now: func() time.Time { return time.Unix(1000, 0) }})
	f := func(change func(m *Measure), want ...string) {
		t.Helper()
		m := override("o-1", "user=42", "api", "5000/minute")
		change(&m)
		before := *m.clone()
		err := set.CheckMeasure(&m)
		if !reflect.DeepEqual(m, before) {
			t.Errorf("the measure was changed: %+v", m)
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if wanted := strings.Join(want, "\n"); got != wanted {
			t.Errorf("%+v:\n%s\nwant\n%s", m, got, wanted)
		}
		var problems MeasureProblems
		if err != nil && (!errors.As(err, &problems) || len(problems) != len(want) || problems[0].ID != m.ID) {
			t.Errorf("%+v: %#v", m, err)
		}
	}
	limits := func(texts ...string) func(m *Measure) { return func(m *Measure) { m.Limits = texts } }
	of := func(rule string, texts ...string) func(m *Measure) {
		return func(m *Measure) { m.Rule, m.Limits = rule, texts }
	}
	who := func(text string) func(m *Measure) { return func(m *Measure) { m.As = whom(text) } }

	f(func(*Measure) {})
	f(limits("unlimited"))
	f(limits("100/minute", "1000/hour"))
	f(limits("{ rate: 100/minute, algorithm: token_bucket, burst: 5 }"))
	f(of("site", "90000/day")) // of the quota
	f(of("site", "9000/1h"))   // a limit
	f(of("site", "50 slots"))  // of concurrency
	f(of("plans", "9999/month"))
	f(who("ip=192.0.2.7"))
	f(who("ip=2001:db8::/32"))
	f(who("who=192.0.2.0/24"))
	f(who("method=POST path=/x host=a.example"))
	f(who("order=7"))
	f(who("everyone="))
	f(func(m *Measure) { m.Kind, m.Limits = Ban, nil })
	f(func(m *Measure) { m.Kind, m.Limits, m.Rule = Ban, nil, "" })
	f(func(m *Measure) { m.Kind, m.Limits, m.Rule, m.Message = Ban, nil, "denied", "Call us." })
	f(func(m *Measure) { m.Until = time.Unix(1001, 0) })

	f(func(m *Measure) { m.ID = "" }, "id: `` cannot be the id of a measure: use up to 32 letters a to z, digits and dashes")
	f(func(m *Measure) { m.ID = "Ann" }, "id: `Ann` cannot be the id of a measure: use up to 32 letters a to z, digits and dashes")
	f(func(m *Measure) { m.Kind = "mute" }, "kind: `mute` is not a kind of measure: write `ban` or `override`")
	f(func(m *Measure) { m.Until = time.Unix(1000, 0) }, "until: 1970-01-01T00:16:40Z is over: write a later time, or leave it out")
	f(func(m *Measure) { m.Reason = " " }, "reason: a measure needs a reason: write why, for whoever is on call next")
	f(func(m *Measure) { m.Reason = "a\nb" }, "reason: it is not plain text in one line")
	f(func(m *Measure) { m.By = strings.Repeat("x", 257) }, "by: it has 257 bytes, and 256 are allowed: write less")
	f(func(m *Measure) { m.Message = "hello" }, "message: an override refuses nobody, so it has no message: take it out")

	f(of("apj", "1/s"), "rule: there is no rule `apj`: did you mean `api`?")
	f(of("elsewhere", "1/s"), "rule: there is no rule `elsewhere`: the rules are api, orders, login, plans, site, off, denied")
	f(of("", "1/s"), "rule: an override is about one rule: write which: api, orders, login, plans, site, off, denied")
	f(of("off", "1/s"), "rule: the rule `off` is disabled, and holds for nobody")
	f(of("denied", "1/s"), "rule: the rule `denied` denies, and has no limits that could be others: change the rule: `unless: { user: … }`")
	f(func(m *Measure) { m.Kind = Ban }, "limits: a ban refuses everything, so it has no limits: take them out, or order an override")

	f(who(""), "as: it does not say who it is about: name somebody, as in user=42 or ip=192.0.2.7")
	f(who("usr=42"), "as: there is no identity `usr`: did you mean `user`?")
	f(who("user= ip=x"), "as: `x` is neither an address nor a network: write `ip=192.0.2.7` or `ip=192.0.2.0/24`", "as: `user` is empty, which is nobody: write `user=VALUE`")
	f(func(m *Measure) { m.As = map[string]string{"account": " \t "} }, "as: `account` is empty, which is nobody: write `account=VALUE`")
	f(who("ip=192.0.2.7/24"), "as: `192.0.2.7/24` is not a network: it has bits beyond its length: write `192.0.2.0/24`, or the address alone")
	f(who("everyone=x"), "as: `everyone` has no value, and this is `x`: leave the value empty")
	f(who("everyone= user=42"), "as: `everyone` beside another name says nothing: take it out")
	f(func(m *Measure) { *m = ban("b-1", "everyone=", "") }, "as: a ban of everyone refuses every request: name the rule that it is for")
	f(func(m *Measure) { *m = ban("b-1", "ip=0.0.0.0/0", "") }, "as: `0.0.0.0/0` is every address, and a ban of it refuses every request: name the rule that it is for")
	f(func(m *Measure) { *m = ban("b-1", "order=7", "") }, "as: `order` is a part of the path, which each rule finds by its own pattern: name the rule as well")
	f(who("a= b= c= d= e= f= g= h= i="), "as: there are 9 names, and 8 are allowed: name fewer")

	f(limits(), "limits: there are no limits: write `5000/minute`, `20 slots` or `unlimited`")
	f(limits(""), "limits: a limit is empty: write `5000/minute`, `20 slots` or `unlimited`")
	f(limits("100"), "limits: `100` does not say per what: write `100/minute`")
	f(limits("100/mintue"), "limits: unknown unit `mintue`: did you mean `100/minute`?")
	f(limits("5000 per minute"), "limits: `5000 per minute` is not a valid rate: write `5000/minute`")
	f(limits("unlimted"), "limits: `unlimted` is not a valid rate: did you mean `unlimited`?")
	f(limits("unlimited", "5/minute"), "limits: `unlimited` cannot be one of several limits: write it alone, or remove it")
	f(limits("0/minute"), "limits: `0/minute` lets nothing through: to refuse every request, order a ban")
	f(limits("100/minute", "200/minute"), "limits: `200/minute` and `100/minute` would be counted in the same counters: keep the smaller one, or give one another period")
	f(limits("1000/month"), "limits: the rule `api` has no quota per month: write `10/minute` or `unlimited`, with other numbers")
	f(limits("20 slots"), "limits: the rule `api` has no slots: write `10/minute` or `unlimited`, with other numbers")
	f(of("site", "0 slots"), "limits: `0 slots` is not a number of slots: write 1 to 10000, as in `20 slots`")
	f(of("site", "9 slots", "8 slots"), "limits: there are two numbers of slots: keep one of them")
	f(of("plans", "9/month", "8/month"), "limits: there are two amounts of the quota: keep one of them")
	f(of("plans", "9/minute"), "limits: the rule `plans` has no limits of that kind, so `9/minute` would be one more: write `1000/month` or `unlimited`, with other numbers")
	f(limits("{ from: header X-Rpm, per: minute, max: 9, else: 1 }"),
		"limits: a limit is a rate here, and does not come from a request: write `limits: 100/minute`; a request can bring a limit along as its override")
	f(limits(make([]string, 9)...), "limits: there are 9 limits, and 8 are allowed: write fewer")
}

// What is counted beside the rules of the file is listed for operators, but no measure can be
// about it: the message says what it is.
func TestCheckMeasureOfWhatIsNoRule(t *testing.T) {
	const domains = "domain: shop\ndescriptors:\n" +
		"  - { key: user, rate_limit: { unit: minute, requests_per_unit: 7 } }\n" +
		"  - key: plan\n    value: free\n    descriptors: [{ key: path, rate_limit: { unit: minute, requests_per_unit: 7 } }]\n"
	set, err := Parse("envoy.yaml", []byte(domains), Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(rule, want string) {
		t.Helper()
		for _, m := range []Measure{ban("b-1", "ip=192.0.2.7", rule), override("o-1", "ip=192.0.2.7", rule, "5/minute")} {
			if err := set.CheckMeasure(&m); err == nil || err.Error() != want {
				t.Errorf("%s of %s:\n%v\nwant\n%s", m.Kind, rule, err, want)
			}
		}
	}
	f("shop", "rule: `shop` is a domain of Envoy's rate limit service, for which there are no measures: change its file, or write a rule")
	for _, name := range []string{"shop.user", "shop.plan_free.path"} {
		f(name, "rule: `"+name+"` is a descriptor of the domain `shop` of Envoy's rate limit service, for which there are no measures: change its file, or write a rule")
	}
	f("shop.override", "rule: `shop.override` stands for the limits that Envoy brings along in descriptors of the domain `shop` of Envoy's rate limit service, for which there are no measures: change them in Envoy, or write a rule")
	f("cl.throttle", "rule: `cl.throttle` stands for the limits that callers of CL.THROTTLE bring along, for which there are no measures: let them send other numbers, or ask a rule with TG.CHECK")
	f("shop.paln", "rule: there is no rule `shop.paln`: the files have no rules")
}

// A measure is JSON by the names that the admin API and the fleet use.
func TestMeasureJSON(t *testing.T) {
	m := override("o-1", "user=42", "api", "5000/minute")
	m.Until = time.Unix(90, 0).UTC()
	m.At = m.At.UTC()
	const want = `{"id":"o-1","kind":"override","as":{"user":"42"},"rule":"api","limits":["5000/minute"],"until":"1970-01-01T00:01:30Z","reason":"a test","by":"ann","at":"1970-01-01T00:00:01Z"}`
	text, err := json.Marshal(m)
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	var back Measure
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, m) {
		t.Errorf("%+v, %v", back, err)
	}
	if text, _ := json.Marshal(ban("b-1", "ip=192.0.2.7", "")); strings.Contains(string(text), "until") || strings.Contains(string(text), "limits") {
		t.Errorf("%s", text)
	}
	if got := m.String(); got != "override o-1 of user=42 for rule api: 5000/minute, by ann, until 1970-01-01T00:01:30Z (a test)" {
		t.Error(got)
	}
}
