package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

// planning is a desk that can plan.
func planning(t *testing.T, src string, change func(*Options)) *desk {
	t.Helper()
	return newDesk(t, src, func(o *Options) {
		o.CompileFiles = func(q *Proposal) (*rules.Set, error) {
			if _, ok := q.Files[q.Main]; !ok {
				return nil, errors.New("no such file")
			}
			return rules.Parse(q.Main, []byte(q.Files[q.Main]), rules.Config{})
		}
		o.Survey = o.Store.(Surveyor)
		o.KeysOf = func(string) []string { return []string{"u1", "u2", "u3", "u4", "u5", "u6"} }
		o.SubjectOf = func(l *tidegate.Limit, key string) []offenders.Part {
			return []offenders.Part{{Name: l.Scope, Value: key}}
		}
		if change != nil {
			change(o)
		}
	})
}

func (d *desk) plan(t *testing.T, src string) Plan {
	t.Helper()
	body, err := json.Marshal(Proposal{Main: "rules.yaml", Files: map[string]string{"rules.yaml": "version: 1\n" + src}})
	if err != nil {
		t.Fatal(err)
	}
	w := d.ask("POST", "/rules/plan", string(body))
	var p Plan
	if err := json.Unmarshal(w.Body.Bytes(), &p); w.Code != 200 || err != nil {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return p
}

const planned = "identify: { user: client header X-User }\nrules: [{ name: api, per: user, missing: skip, %s }]\n"

// use makes each of the users u1 to u6 do as many requests.
func (d *desk) use(t *testing.T) {
	for n := range 7 {
		for range n {
			if !d.charge(t, "GET /", "user", fmt.Sprint("u", n)) {
				t.Fatalf("u%d is refused", n)
			}
		}
	}
}

func TestPlanCountsWhoWouldBeRefused(t *testing.T) {
	f := func(old, now string, want ...KeysPlan) {
		t.Helper()
		d := planning(t, fmt.Sprintf(planned, old), nil)
		d.use(t)
		p := d.plan(t, fmt.Sprintf(planned, now))
		if len(p.Keys) != len(want) || p.Unknown != "" || !p.Valid {
			t.Fatalf("%s: %+v", now, p)
		}
		for i, k := range p.Keys {
			w := want[i]
			w.Rule, w.Was, w.Now, w.Names, w.Seen = k.Rule, k.Was, k.Now, k.Names, 1
			if fmt.Sprint(k) != fmt.Sprint(w) {
				t.Errorf("%s: got  %+v\nwant %+v", now, k, w)
			}
		}
		// Nothing was charged, and it is not in force.
		if again := d.plan(t, fmt.Sprintf(planned, now)); len(want) > 0 && again.Keys[0].AtMost != p.Keys[0].AtMost {
			t.Errorf("%s: a second plan says %+v", now, again)
		}
		if !d.charge(t, "GET /", "user", "u5") {
			t.Errorf("%s: u5 is refused by what was only planned", now)
		}
	}
	f("limits: 10/day", "limits: 10/day")
	f("limits: 10/day", "limits: 3/day", KeysPlan{Keys: 6, AtLeast: 4, AtMost: 4}) // u3 to u6
	f("limits: 6/day", "limits: 3/day", KeysPlan{Keys: 6, Refused: 1, AtLeast: 3, AtMost: 3})
	f("limits: 6/day", "limits: 9/day", KeysPlan{Keys: 6, Refused: 1, Freed: 1})
	f("limits: 10/day", "limits: { rate: 3/day, algorithm: token_bucket }", KeysPlan{Keys: 6, AtLeast: 4, AtMost: 4})
	f("limits: { rate: 10/day, algorithm: fixed_window }", "limits: { rate: 4/week, algorithm: sliding_window }", KeysPlan{Keys: 6, AtLeast: 3, AtMost: 3})
	f("quota: 10/month", "quota: 5/month", KeysPlan{Keys: 6, AtLeast: 2, AtMost: 2})
	f("limits: 6/day, mode: shadow", "limits: 6/day", KeysPlan{Keys: 6, AtLeast: 1, AtMost: 1})
	f("limits: 6/day", "limits: 6/day, mode: shadow", KeysPlan{Keys: 6, Refused: 1, Freed: 1})
	f("limits: 10/day", "limits: 3/day, enforce: 50%", KeysPlan{Keys: 6, AtMost: 4})
	// A counter does not say who is a premium caller.
	const branch = ", for: [{ when: { user: u6 }, limits: %d/day }]"
	f("limits: 10/day"+fmt.Sprintf(branch, 20), "limits: 3/day"+fmt.Sprintf(branch, 5), KeysPlan{Keys: 6, AtLeast: 2, AtMost: 4})
	// Nor who was one, and no longer is.
	const all = ", for: [{ when: { user: \"u*\" }, limits: 10/day }]"
	f("limits: 3/day"+all, "limits: 3/day", KeysPlan{Keys: 6, AtMost: 4})
	f("limits: 10/day", "limits: 10/day, for: [{ when: { user: \"u*\" }, limits: 3/day }]", KeysPlan{Keys: 6, AtMost: 4})
	f("limits: 3/day"+all, "limits: 3/day, for: [{ when: { user: \"u*\" }, limits: 5/day }]", KeysPlan{Keys: 6, AtMost: 2})
}

// Some of them are named, those with the least room first.
func TestPlanNamesSome(t *testing.T) {
	d := planning(t, fmt.Sprintf(planned, "limits: 10/day"), nil)
	d.use(t)
	p := d.plan(t, fmt.Sprintf(planned, "limits: 4/day"))
	if got := fmt.Sprint(p.Keys[0].Names); got != "[[{user u6 false}] [{user u5 false}] [{user u4 false}]]" {
		t.Error(got)
	}
}

func TestPlanTellsOfRulesAndCounters(t *testing.T) {
	d := planning(t, "rules: [{ name: api, per: ip, limits: 3/day }, { name: old, per: ip, limits: 3/day }]", nil)
	p := d.plan(t, "rules: [{ name: api, per: ip, limits: 3/day }, { name: new, per: ip, limits: 3/day }]")
	if fmt.Sprint(p.Added, p.Removed) != "[new] [old]" || len(p.Counters) != 1 || !strings.Contains(p.Counters[0], "start empty") {
		t.Errorf("%+v", p)
	}
	if p := d.plan(t, "rules: 5"); p.Valid || len(p.Problems) == 0 {
		t.Errorf("%+v", p)
	}
	problem(t, d.ask("POST", "/rules/plan", `{"files":{}}`), 400, "no files")
	problem(t, d.ask("POST", "/rules/plan", `{"main":"x","files":{"y":""}}`), 400, "no such file")
	problem(t, newDesk(t, "rules: [{ name: api, per: ip, limits: 3/day }]", nil).ask("POST", "/rules/plan", `{"files":{"a":""}}`), 404, "no rules here")
}

// sampling is a store that looks at a part of its keys, or fails.
type sampling struct {
	seen float64
	err  error
}

func (s sampling) Survey(_ context.Context, asked [][]tidegate.Check, _ [][]string, f func(int, string, []int64)) ([]float64, error) {
	for i := range 1000 { // of which one in ten is above the new limit
		left := make([]int64, len(asked[0]))
		for j := range left {
			left[j] = 1
		}
		if i%10 == 0 {
			left[len(left)-1] = 0
		}
		f(0, "", left)
	}
	return []float64{s.seen}, s.err
}

// An estimate says so, and how far it may be off; what cannot be known is told.
func TestPlanOfASample(t *testing.T) {
	d := planning(t, fmt.Sprintf(planned, "limits: 10/day"), func(o *Options) { o.Survey = sampling{seen: 0.25} })
	k := d.plan(t, fmt.Sprintf(planned, "limits: 3/day")).Keys[0]
	// 1.96 × √(1000 × 0.1 × 0.9) ÷ 0.25
	if k.Keys != 4000 || k.AtMost != 400 || k.Seen != 0.25 || k.Margin < 74 || k.Margin > 76 {
		t.Errorf("%+v", k)
	}
	d = planning(t, fmt.Sprintf(planned, "limits: 10/day"), func(o *Options) { o.Survey = sampling{err: errors.New("Redis is away")} })
	if p := d.plan(t, fmt.Sprintf(planned, "limits: 3/day")); len(p.Keys) != 0 || !strings.Contains(p.Unknown, "Redis is away") {
		t.Errorf("%+v", p)
	}
}
