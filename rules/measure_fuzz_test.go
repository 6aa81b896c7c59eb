package rules

import (
	"encoding/json"
	"testing"
	"time"

	"tidegate.dev/tidegate"
)

// FuzzMeasure orders anything: it is refused in words, or it holds for whom it names and for
// nobody else, and survives being written as JSON.
func FuzzMeasure(f *testing.F) {
	for _, limits := range []string{"5000/minute", "unlimited", "20 slots", "7/month", "1/day", "{ rate: 1/s, burst: 3, algorithm: token_bucket }", "[1/s, 2/m]", "x", "{", "0/s", "-1/s", "99999999999/s", "1/0s", "# a", "\"5/s\"", "5/s\n6/s"} {
		f.Add("o-1", "override", "user", "42", "api", limits, "why")
		f.Add("o-1", "override", "ip", "192.0.2.7", "site", limits, "why")
		f.Add("o-1", "override", "order", "7", "plans", limits, "why")
	}
	for _, value := range []string{"10.0.0.0/8", "::/0", "2001:db8::1", "::ffff:192.0.2.1", "192.0.2.7/24", "fe80::1%eth0", "", " ", "@", "ANN ", "\xff"} {
		for _, name := range []string{"ip", "net", "who", "user", "account", "everyone", "path", "route", "host", " ", "", "nobody"} {
			f.Add("b-1", "ban", name, value, "", "", "why")
			f.Add("b-1", "ban", name, value, "site", "", "")
		}
	}
	set, err := Parse("rules.yaml", []byte("version: 1\n"+measureRules), Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, kind, name, value, rule, limits, reason string) {
		m := Measure{ID: id, Kind: MeasureKind(kind), As: map[string]string{name: value}, Rule: rule, Reason: reason, By: "ann", At: time.Unix(1, 0)}
		if limits != "" {
			m.Limits = []string{limits}
		}
		err := set.CheckMeasure(&m)
		live := NewLive(set)
		problems := live.SetMeasures([]Measure{m})
		if err == nil && len(problems) > 0 {
			t.Fatalf("%+v is fine, and %v", m, problems)
		}
		somebody := []*tidegate.Request{
			request("POST /api/", "header X-User", value, "body.email", value, "ip", "192.0.2.7"),
			request("POST /plans", "header X-User", value), request("POST /login", "body.email", value),
			request("GET /orders/7"), as("GET /orders/7", name, value),
		}
		for _, r := range somebody {
			live.Match(r, nil)
			e := live.Explain(r)
			_ = e.Ban.text()
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatalf("%+v: refused without a word", m)
			}
			return
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back Measure
		if err := json.Unmarshal(text, &back); err != nil || set.CheckMeasure(&back) != nil {
			t.Fatalf("%s: %v, %v", text, err, set.CheckMeasure(&back))
		}
		live.SetMeasures([]Measure{back})
		if name == "user" && (rule == "" || rule == "api") {
			him, other := request("GET /api/", "header X-User", value), request("GET /api/", "header X-User", value+"x")
			if !live.measures(him) || live.measures(other) {
				t.Fatalf("%+v holds for him: %v, for others: %v", m, live.measures(him), live.measures(other))
			}
		}
	})
}

func (m *Measure) text() string {
	if m == nil {
		return ""
	}
	return m.String()
}

// measures reports whether a measure holds for the request.
func (l *Live) measures(r *tidegate.Request) bool {
	e := l.Explain(r)
	if e.Ban != nil {
		return true
	}
	for i := range e.Rules {
		if e.Rules[i].Override != nil {
			return true
		}
	}
	return false
}
