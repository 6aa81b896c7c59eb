package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
	"tidegate.dev/tidegate/rules"
)

// audited is a desk with an operator of every role, and its audit log in memory.
func audited(t *testing.T) *desk {
	t.Helper()
	log, err := auditlog.Open(auditlog.Options{Node: "web-1"})
	if err != nil {
		t.Fatal(err)
	}
	return newGuarded(t, log)
}

// entries asks for the audit log.
func (d *desk) entries(t *testing.T, query string) []auditlog.Entry {
	t.Helper()
	w := d.ask("GET", "/audit"+query, "", credentials["token"](View))
	var page AuditPage
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return page.Entries
}

// Every write has an entry that says who did what, why, and what came of it, whatever the
// way that the operator is known by; so has every attempt that was refused. Reading has none.
func TestEveryWriteIsAudited(t *testing.T) {
	testdep.SkipUnderRace(t)
	d := audited(t)
	for way, as := range credentials {
		for _, e := range everyEndpoint {
			for _, role := range allRoles {
				before := len(d.entries(t, "?n=1000"))
				w := d.ask(e.method, e.path, e.body, as(role))
				all := d.entries(t, "?n=1000")
				writes := e.method != "GET" && (e.least >= Operate || e.path == "/why") && !strings.Contains(e.body, "preview")
				refused := e.method != "GET" && role < e.least
				more := len(all) - before
				switch {
				case refused && len(d.entries(t, "?n=1000&result=refused")) >= maxRefusals:
				case !writes && !refused && more != 0, (writes || refused) && more != 1:
					t.Errorf("%s %s as %s: %d entries: %+v", e.method, e.path, role, more, all)
				case more == 1:
					got := all[0]
					want := Done
					if refused {
						want = Refused
					} else if w.Code != 200 {
						want = Failed
					}
					if got.Result != want || !strings.HasSuffix(got.Who+" ", roleOwner(way, role)+" ") || got.Via != way || got.Role != role.String() ||
						got.Node != "web-1" || got.Peer == "" || got.Action == "" || (want == Done) != (got.Error == "") {
						t.Errorf("%s %s as %s by %s, answered %d: %+v", e.method, e.path, role, way, w.Code, got)
					}
				}
			}
		}
		d = audited(t)
	}
}

func roleOwner(way string, role Role) string {
	return map[string]string{"token": role.String() + "-op", "certificate": "cert-" + role.String(), "sso": "sso-" + role.String()}[way]
}

// A write that cannot tell its effect first says so, and does nothing.
func TestWritesWithoutPreview(t *testing.T) {
	d := audited(t)
	for _, path := range []string{"/rules/reload", "/rules/apply", "/load", "/deferred/retry", "/deferred/drop", "/deferred/drain"} {
		problem(t, d.ask("POST", path, `{"preview":true}`, credentials["token"](Rule)), 400, "preview")
	}
	if d.rules.status.Reloads != 0 {
		t.Error("the rules were read again")
	}
}

// An entry has what was asked for and why.
func TestEntryOfAReset(t *testing.T) {
	d := audited(t)
	d.ask("POST", "/keys/reset", `{"rule":"api","as":{"ip":"203.0.113.9"},"reason":"ticket 4711"}`, credentials["token"](Operate))
	d.ask("POST", "/keys/refund", `{"rule":"apo","as":{"ip":"203.0.113.9"},"events":3}`, credentials["token"](Operate))
	all := d.entries(t, "")
	text, err := json.Marshal(all[1].What)
	if err != nil || all[1].Action != "reset" || all[1].Reason != "ticket 4711" || string(text) != `{"as":{"ip":"203.0.113.9"},"counters":1,"rule":"api"}` {
		t.Errorf("%+v: %s", all[1], text)
	}
	if all[0].Action != "refund" || all[0].Result != Failed || !strings.Contains(all[0].Error, "did you mean api?") {
		t.Errorf("%+v", all[0])
	}
	if got := d.entries(t, "?action=reset&n=1"); len(got) != 1 || got[0].ID != all[1].ID {
		t.Errorf("%+v", got)
	}
	if got := d.entries(t, "?who=nobody"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	problem(t, d.ask("GET", "/audit?result=nope", "", credentials["token"](View)), 400, `result has to be done, failed or refused, and is "nope".`)
	for _, query := range []string{"?n=0", "?n=1001", "?n=x", "?m=1"} {
		problem(t, d.ask("GET", "/audit"+query, "", credentials["token"](View)), 400, "")
	}
}

// Whoever is refused again and again, and machines that push the load, do not fill the log.
func TestAuditIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := audited(t)
		for range 500 {
			d.ask("POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"}}`)
			d.ask("POST", "/load", `{"value":1}`, credentials["token"](Operate))
		}
		if got := len(d.entries(t, "?n=1000")); got != maxRefusals+1 {
			t.Errorf("%d entries", got)
		}
		time.Sleep(time.Minute)
		d.ask("POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"}}`)
		if got := d.entries(t, "?n=1")[0]; got.Skipped != 500-maxRefusals || got.Who != "" || got.Result != Refused {
			t.Errorf("%+v", got)
		}
	})
}

// A log that cannot be written does not keep an operator from acting; the entry is in the
// log of the process.
func TestAuditThatCannotBeWritten(t *testing.T) {
	d := newDesk(t, few, func(o *Options) { o.Audit = full{} })
	if w := d.ask("POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"},"reason":"why not"}`); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(d.log.String(), "no space left") || !strings.Contains(d.log.String(), "why not") {
		t.Error(d.log)
	}
}

type full struct{ Audit }

func (full) Append(auditlog.Entry) error { return errors.New("no space left") }

func TestValidate(t *testing.T) {
	d := newGuarded(t, nil)
	f := func(source string, valid bool, want string) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"source": source})
		if err != nil {
			t.Fatal(err)
		}
		w := d.ask("POST", "/rules/validate", string(body), credentials["sso"](View))
		var got struct{ Valid bool }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Valid != valid || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.100q: %v: %d %.500s", source, err, w.Code, w.Body)
		}
	}
	before := d.rules.live.Set()
	f("version: 1\n"+few, true, `"rules": [
    "api"`)
	f("version: 1\nrules: [{ name: api, match: /api/, per: ip, limits: 5/hour }]\n", true, "changes")
	f("version: 1\nrules: [{ nmae: api }]\n", false, "did you mean `name`?")
	f("", false, "empty")
	f("version: 1\nrules: ["+strings.Repeat("{name: a},", 5000)+"]", false, "problems")
	if d.rules.live.Set() != before {
		t.Error("rules that were only looked at are in force")
	}
	problem(t, d.ask("POST", "/rules/validate", `{"source":"`+strings.Repeat("x", maxRules)+`"}`, credentials["token"](View)), 413, fmt.Sprint(maxRules))
	problem(t, d.ask("POST", "/rules/validate", `{"name":"../x","source":""}`, credentials["token"](View)), 400, "without a folder")
}

func TestExplain(t *testing.T) {
	d := newDesk(t, userRule("limits: 5/minute"), nil)
	f := func(body string) (e rules.Explanation) {
		t.Helper()
		w := d.ask("POST", "/rules/explain", body)
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != 200 {
			t.Errorf("%s: %v: %d %s", body, err, w.Code, w.Body)
		}
		return e
	}
	e := f(`{"method":"POST","url":"/api/x","as":{"user":"42"}}`)
	if len(e.Rules) != 1 || !e.Rules[0].Applies || e.Rules[0].Key != "42" || e.Method != "POST" {
		t.Errorf("%+v", e)
	}
	if e := f(`{"url":"/api/x","headers":{"x-user":"7"}}`); !strings.Contains(e.Identities[0].Note, "believed only from a trusted peer") {
		t.Errorf("%+v", e)
	}
	if e := f(`{"url":"/other"}`); e.Rules[0].Applies {
		t.Errorf("%+v", e)
	}
	if e := f(`{"url":"/api/x","rule":"none"}`); len(e.Rules) != 0 {
		t.Errorf("%+v", e)
	}
	problem(t, d.ask("POST", "/rules/explain", `{}`), 400, "method and url")
	problem(t, d.ask("POST", "/rules/explain", `{"url":"/","ip":"here"}`), 400, "not a request")
	if got := d.get(t, Question{As: map[string]string{"user": "42"}})[0]; got.Remaining != 5 {
		t.Errorf("explaining was charged: %+v", got)
	}
}

func TestSeries(t *testing.T) {
	from := time.Date(2026, 11, 16, 3, 0, 0, 0, time.UTC)
	own := func() Series {
		return Series{Nodes: []string{"web-1"}, From: from, Step: 1, Lines: []Line{
			{"api", "ok", []uint32{1, 2, 3, 4, 5, 6, 7}}, {"api", "refused", []uint32{0, 0, 0, 0, 0, 0, 1 << 31}}, {"web", "ok", make([]uint32, 7)},
		}}
	}
	d := newDesk(t, few, func(o *Options) { o.Series = own })
	d.board.Answer(SeriesTopic, func(question []byte) []byte { return AnswerSeries(question, own()) })
	f := func(query string, lines int, from time.Time, counts ...uint32) {
		t.Helper()
		w := d.ask("GET", "/series"+query, "")
		var got Series
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || len(got.Lines) != lines || !slices.Equal(got.Nodes, []string{"web-1"}) || !got.From.Equal(from) || !slices.Equal(got.Lines[0].Counts, counts) {
			t.Errorf("%s: %v: %d %s", query, err, w.Code, w.Body)
		}
	}
	f("", 3, from, 1, 2, 3, 4, 5, 6, 7)
	f("?rule=api", 2, from, 1, 2, 3, 4, 5, 6, 7)
	f("?rule=api&outcome=ok&step=5", 1, from, 15)
	f("?rule=api&outcome=ok&fleet=false", 1, from, 1, 2, 3, 4, 5, 6, 7)
	problem(t, d.ask("GET", "/series?fleet=some", ""), 400, "true or false")
	problem(t, d.ask("GET", "/series?step=2", ""), 400, "1 or 5")
	problem(t, d.ask("GET", "/series?rule="+strings.Repeat("x", board.MaxQuestionBody), ""), 400, "too long")
	problem(t, d.ask("GET", "/series?since=2", ""), 400, "no parameter")
	problem(t, newDesk(t, few, nil).ask("GET", "/series", ""), http.StatusNotFound, "no series")
}
