package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
)

// tell orders or ends a measure.
func (d *desk) tell(t *testing.T, path, body string) (e Effect) {
	t.Helper()
	w := d.ask("POST", path, body)
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %s: %v", body, w.Code, w.Body, err)
	}
	return e
}

// inForce are the measures that are listed, in words.
func (d *desk) inForce(t *testing.T, query string) (all []string) {
	t.Helper()
	w := d.ask("GET", "/measures"+query, "")
	var list Measures
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	for _, m := range list.Measures {
		all = append(all, fmt.Sprintf("%s %s %s%v%s", m.Kind, m.Who(), m.Rule, m.Limits, m.Problem))
	}
	return all
}

// An override holds from its order to its end and no longer, and refills nobody; a preview
// says what it would do and does nothing.
func TestOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, userRule("limits: 3/hour"), nil)
		defer d.board.Close()
		passes := func(user string) bool { return d.charge(t, "GET /api/", "user", user) }
		for range 3 {
			passes("42")
		}
		const order = `{"kind":"override","as":{"user":"42"},"rule":"api","limits":["10/hour"],"for":"2h","reason":"ticket 7"`
		preview := d.tell(t, "/measures", order+`,"preview":true}`)
		if passes("42") || len(d.inForce(t, "")) != 0 || !preview.Preview || preview.Reach != nil || preview.Holds == "" {
			t.Errorf("a preview did something: %+v", preview)
		}
		if len(preview.Counters) != 1 || preview.Counters[0].Remaining != 0 || len(preview.Then) != 1 || preview.Then[0].Remaining != 7 || preview.Then[0].Capacity != 10 {
			t.Errorf("its effect: %+v", preview)
		}
		e := d.tell(t, "/measures", order+"}")
		if e.Reach == nil || e.Measure.By != "local" || !e.Measure.Until.Equal(time.Now().Add(2*time.Hour)) || e.Measure.ID != preview.Measure.ID {
			t.Errorf("got %+v", e)
		}
		for range 7 {
			if !passes("42") {
				t.Fatal("the override does not hold")
			}
		}
		if passes("42") {
			t.Error("it refilled the counter")
		}
		// A second order about the same takes its place.
		again := d.tell(t, "/measures", `{"kind":"override","as":{"user":"42"},"rule":"api","limits":["unlimited"],"for":"1s","reason":"ticket 8"}`)
		if again.Replaces == nil || again.Replaces.Reason != "ticket 7" || !passes("42") || len(d.inForce(t, "")) != 1 {
			t.Errorf("got %+v", again)
		}
		for _, query := range []string{"rule=api&as=user=42", "as=user=42", "rule=api&as=user=42&url=/api/"} {
			body := d.ask("GET", "/keys?"+query, "").Body.String()
			if !strings.Contains(body, again.Measure.ID) || !strings.Contains(body, "ticket 8") || strings.Contains(body, "does not limit") {
				t.Errorf("%s does not say which measure lets them through: %s", query, body)
			}
		}
		time.Sleep(time.Second)
		if passes("42") || len(d.inForce(t, "")) != 0 {
			t.Error("it did not end after a second")
		}
	})
}

// A ban refuses everything until it is ended, by its id or by whom it is about.
func TestBan(t *testing.T) {
	d := newDesk(t, "rules: [{ name: api, match: /api/, per: ip, limits: 50/minute }]\n", nil)
	passes := func(ip string) bool { return d.charge(t, "GET /other", "ip", ip) }
	e := d.tell(t, "/measures", `{"kind":"ban","as":{"ip":"203.0.113.9"},"reason":"scraper"}`)
	if passes("203.0.113.9") || !passes("203.0.113.8") || !e.Measure.Until.IsZero() {
		t.Errorf("got %+v", e)
	}
	d.tell(t, "/measures", `{"kind":"ban","as":{"ip":"203.0.113.128/25"},"rule":"api","for":"1d","reason":"all of them"}`)
	d.tell(t, "/measures", `{"kind":"override","as":{"ip":"203.0.113.9"},"rule":"api","limits":["9/minute"],"reason":"in between"}`)
	if d.charge(t, "GET /api/", "ip", "203.0.113.200") || !passes("203.0.113.200") {
		t.Error("the ban of a network under a rule")
	}
	// /keys tells of them, and so does explain.
	keys := d.keys(t, "GET", "/keys?as=ip=203.0.113.9", "")
	if len(keys.Measures) != 2 || keys.Measures[0].Kind != rules.Ban {
		t.Errorf("got %+v", keys.Measures)
	}
	if w := d.ask("POST", "/rules/explain", `{"url":"/other","as":{"ip":"203.0.113.9"}}`); !strings.Contains(w.Body.String(), "scraper") {
		t.Errorf("explained: %s", w.Body)
	}
	if got := d.inForce(t, "?search=ALL+OF"); !slices.Equal(got, []string{"ban ip=203.0.113.128/25 api[]"}) {
		t.Errorf("got %q", got)
	}
	problem(t, d.ask("POST", "/measures/end", `{"as":{"ip":"203.0.113.9"}}`), 409, "Several measures")
	problem(t, d.ask("POST", "/measures/end", `{"as":{"ip":"203.0.113.7"}}`), 404, "no such ban or override")
	problem(t, d.ask("POST", "/measures/end", `{"kind":"ban"}`), 400, "does not say which")
	if e := d.tell(t, "/measures/end", `{"kind":"ban","as":{"ip":"203.0.113.9"},"preview":true}`); passes("203.0.113.9") || e.Measure.Reason != "scraper" {
		t.Errorf("a preview ended %+v", e)
	}
	d.tell(t, "/measures/end", `{"kind":"ban","as":{"ip":"203.0.113.9"},"reason":"was ours"}`)
	if !passes("203.0.113.9") {
		t.Error("the ban was not ended")
	}
	for _, m := range []string{"ban", "override"} {
		list := d.ask("GET", "/measures", "")
		var all Measures
		if err := json.Unmarshal(list.Body.Bytes(), &all); err != nil || all.Measures[0].Kind != rules.MeasureKind(m) {
			t.Fatalf("%v: %s", err, list.Body)
		}
		d.tell(t, "/measures/end", `{"id":"`+all.Measures[0].ID+`"}`)
	}
	if got := d.inForce(t, ""); got != nil {
		t.Errorf("still in force: %q", got)
	}
	// It can be ordered again.
	d.tell(t, "/measures", `{"kind":"ban","as":{"ip":"::ffff:203.0.113.9"},"reason":"again"}`)
	if passes("203.0.113.9") {
		t.Error("a ban that was ended cannot be ordered again")
	}
}

// Whoever ends a measure names people as whoever ordered it did, or in another spelling of the same.
func TestEndInAnotherSpelling(t *testing.T) {
	d := newDesk(t, "identify: { account: lower trim header X-Account, user: header X-User }\nrules: [{ name: api, per: account, limits: 50/minute }]\n", nil)
	f := func(ordered, ended string, found bool) {
		t.Helper()
		id := d.tell(t, "/measures", `{"kind":"ban","as":{`+ordered+`},"reason":"x"}`).Measure.ID
		body := `{"kind":"ban","as":{` + ended + `}}`
		if !found {
			problem(t, d.ask("POST", "/measures/end", body), 404, "no such ban or override")
			d.tell(t, "/measures/end", `{"id":"`+id+`"}`)
			return
		}
		if got := d.tell(t, "/measures/end", body).Measure.ID; got != id || d.inForce(t, "") != nil {
			t.Errorf("a ban of %s by %s: %s was ended, not %s", ordered, ended, got, id)
		}
	}
	f(`"ip":"203.0.113.9"`, `"ip":"::ffff:203.0.113.9"`, true)
	f(`"ip":"::ffff:203.0.113.9"`, `"ip":"203.0.113.9"`, true)
	f(`"ip":"203.0.113.77/24"`, `"ip":"203.0.113.77/24"`, true)
	f(`"ip":"203.0.113.77/24"`, `"ip":"203.0.113.0/24"`, true)
	f(`"ip":"::ffff:203.0.113.0/120"`, `"ip":"203.0.113.0/24"`, true)
	f(`"ip":"2001:db8:0::1"`, `"ip":"2001:DB8::1"`, true)
	f(`"ip":"203.0.113.9"`, `"ip":"203.0.113.8"`, false)
	f(`"ip":"203.0.113.0/24"`, `"ip":"203.0.113.0/25"`, false)
	f(`"account":"Ann"`, `"account":"ann"`, true)
	f(`"account":"ann"`, `"account":" ANN "`, true)
	f(`"account":"Ann","ip":"192.0.2.0/24"`, `"account":"ann","ip":"192.0.2.7/24"`, true)
	f(`"account":"ann"`, `"account":"anna"`, false)
	f(`"user":"Ann"`, `"user":"ann"`, false) // where the rules say nothing of spelling
	f(`"user":"Ann"`, `"user":"Ann"`, true)
	// Where two are about the same people, it is not for the server to choose.
	for _, name := range []string{"Ann", "ann"} {
		d.tell(t, "/measures", `{"kind":"ban","as":{"account":"`+name+`"},"reason":"x"}`)
	}
	problem(t, d.ask("POST", "/measures/end", `{"as":{"account":"ann"}}`), 409, "Several measures")
}

// No value can be written so that its measure takes the place of one about others.
func TestMeasuresOfOthersStay(t *testing.T) {
	d := newDesk(t, "identify: { tenant: header X-Tenant, user: header X-User }\nrules: [{ name: api, per: user, limits: 50/minute }]\n", nil)
	d.tell(t, "/measures", `{"kind":"ban","as":{"tenant":"acme","user":"7"},"reason":"x"}`)
	d.tell(t, "/measures", `{"kind":"ban","as":{"tenant":"acme, user=7"},"reason":"x"}`)
	if got := d.inForce(t, ""); len(got) != 2 {
		t.Errorf("in force: %q", got)
	}
}

// One that no longer fits the rules is marked, and the others hold.
func TestMeasureOfARuleThatIsGone(t *testing.T) {
	d := newDesk(t, userRule("limits: 3/hour"), nil)
	d.tell(t, "/measures", `{"kind":"override","as":{"user":"42"},"rule":"api","limits":["10/hour"],"reason":"x"}`)
	d.tell(t, "/measures", `{"kind":"ban","as":{"user":"7"},"reason":"x"}`)
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: header X-User }\nrules: [{ name: web, match: /api/, per: user, limits: 1/hour }]\n"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d.rules.live.Swap(set)
	got := d.inForce(t, "")
	if len(got) != 2 || !strings.Contains(got[0], "rule") || strings.Contains(got[1], "no rule") || d.charge(t, "GET /api/", "user", "7") || !d.charge(t, "GET /api/", "user", "42") {
		t.Errorf("got %q", got)
	}
}

func TestOrdersThatCannotBe(t *testing.T) {
	d := newDesk(t, userRule("limits: 3/hour"), nil)
	f := func(body, part string) {
		t.Helper()
		problem(t, d.ask("POST", "/measures", body), 400, part)
	}
	f(`{"kind":"ban","as":{"user":"42"}}`, "no reason")
	f(`{"kind":"ban","as":{"user":"42"},"reason":"  "}`, "no reason")
	f(`{"kind":"ban","as":{"user":"42"},"reason":"`+strings.Repeat("x", 600)+`"}`, "longer than")
	f(`{"kind":"ban","as":{},"reason":"x"}`, "as")
	f(`{"kind":"ban","reason":"x"}`, "as")
	f(`{"kind":"kick","as":{"user":"42"},"reason":"x"}`, "kind")
	f(`{"kind":"ban","as":{"usr":"42"},"reason":"x"}`, "user")
	f(`{"kind":"override","as":{"user":"42"},"rule":"apo","limits":["5/hour"],"reason":"x"}`, "api")
	f(`{"kind":"override","as":{"user":"42"},"rule":"api","limits":["5 per hour"],"reason":"x"}`, "limit")
	f(`{"kind":"override","as":{"user":"42"},"rule":"api","reason":"x"}`, "limits")
	for _, long := range []string{"x", "-1h", "0s", "2w", "1000000h", "1.5d", "d", "99999999999999d", "1h1d", "1d1h", "1hd", "1m1d"} {
		f(`{"kind":"ban","as":{"user":"42"},"reason":"x","for":"`+long+`"}`, "")
	}
	f(`{"kind":"ban","as":{"user":"42"},"reason":"x","for":"1h","until":"2099-01-01T00:00:00Z"}`, "one of them")
	f(`{"kind":"ban","as":{"user":"42"},"reason":"x","until":"2001-01-01T00:00:00Z"}`, "past")
	f(`{"kind":"ban","as":{"user":"`+strings.Repeat("x", 2000)+`"},"reason":"x"}`, "cannot be ordered")
	if got := d.inForce(t, ""); got != nil {
		t.Errorf("in force: %q", got)
	}
	w := newDesk(t, few, func(o *Options) { o.Rules, o.Store = nil, nil }).ask("POST", "/measures", `{"kind":"ban","as":{"ip":"192.0.2.1"},"reason":"x"}`)
	problem(t, w, http.StatusNotFound, "no rules")
}

// fleetBoard answers for other instances, of which one is missing.
type fleetBoard struct {
	*board.Board
	answers map[board.Node][]byte
	missing []board.Absent
}

func (f fleetBoard) Ask(context.Context, string, []byte) (map[board.Node][]byte, []board.Absent, error) {
	return f.answers, f.missing, nil
}

// The lists of all instances are joined, and it says who did not answer.
func TestOffendersOfAFleet(t *testing.T) {
	list := func(node string, n int64) []byte {
		text, err := json.Marshal(offenders.Report{At: time.Now(), Nodes: []string{node}, Lists: []offenders.List{{
			Rule: "api", By: offenders.Refused, Minutes: 1, Seconds: 60,
			Entries: []offenders.Entry{{Subject: []offenders.Part{{Name: "user", Value: "42"}}, Count: n, AtLeast: n, AtMost: n}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	d := newDesk(t, few, func(o *Options) {
		o.Offenders = func(offenders.Query) offenders.Report { return offenders.Report{} }
		o.Board = fleetBoard{
			answers: map[board.Node][]byte{{ID: "a", Name: "web-1"}: list("web-1", 30), {ID: "b", Name: "web-2"}: list("web-2", 12), {ID: "c", Name: "web-3"}: []byte("nonsense")},
			missing: []board.Absent{{Node: board.Node{ID: "d", Name: "web-4"}, Why: "it did not answer"}},
		}
	})
	w := d.ask("GET", "/offenders?by=refused&minutes=1", "")
	var got offenders.Report
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Lists) != 1 || got.Lists[0].Entries[0].Count != 42 || !slices.Equal(got.Nodes, []string{"web-1", "web-2"}) || len(got.Missing) != 2 {
		t.Errorf("%v: %d %s", err, w.Code, w.Body)
	}
	for _, query := range []string{"?by=size", "?minutes=5", "?minutes=x", "?top=1000", "?n=5"} {
		problem(t, d.ask("GET", "/offenders"+query, ""), 400, "")
	}
	problem(t, newDesk(t, few, nil).ask("GET", "/offenders", ""), 404, "no lists")

	d = newDesk(t, few, func(o *Options) {
		o.Offenders = func(offenders.Query) offenders.Report { return offenders.Report{} }
	})
	problem(t, d.ask("GET", "/offenders?rule=apo", ""), 404, "There is no rule apo; did you mean api?")
	if w := d.ask("GET", "/offenders?rule=api", ""); w.Code != 200 {
		t.Errorf("a rule that nobody is listed under: %d %s", w.Code, w.Body)
	}
	problem(t, d.ask("GET", "/offenders?search="+strings.Repeat("x", board.MaxQuestionBody), ""), 400, "too long")
}
