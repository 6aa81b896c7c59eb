package admin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/slip"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
)

// kept is a history of some sets.
type kept map[string]*source.Bundle

func (k kept) History(context.Context) ([]source.Edition, error) { return nil, nil }

func (k kept) Get(_ context.Context, hash string) (*source.Bundle, error) {
	for full, b := range k {
		if strings.HasPrefix(full, hash) {
			return b, nil
		}
	}
	return nil, source.ErrNoRevision
}

// diary is an audit log in memory.
type diary struct{ entries []auditlog.Entry }

func (d *diary) Append(e auditlog.Entry) error { d.entries = append(d.entries, e); return nil }
func (d *diary) Last(context.Context, int) ([]auditlog.Entry, string, error) {
	return d.entries, "", nil
}

const (
	rulesNow  = "identify: { user: header X-User }\nrules:\n  - name: api\n    per: user\n    limits: 50/minute\n"
	rulesThen = "version: 1\nidentify: { user: header X-User }\nrules:\n  - name: web\n    per: ip\n    limits: 9/minute\n\n  # Of all who call.\n  - name: api\n    per: user\n    limits: 5/minute\n  # The end.\n"
)

func whyDesk(t *testing.T, secret bool) (*desk, *slip.Sealer, *diary) {
	t.Helper()
	sealer, written := slip.NewSealer(), new(diary)
	then := &source.Bundle{Edition: source.Edition{Hash: "aaaa1111bbbb2222cccc", Revision: "7", Author: "ann"}, Main: "rules.yaml", Files: map[string][]byte{"rules.yaml": []byte(rulesThen)}}
	d := newDesk(t, rulesNow, func(o *Options) {
		o.OpenSlip, o.Audit, o.History = sealer.Open, written, kept{then.Hash: then}
		o.CompileFiles = func(q *Proposal) (*rules.Set, error) {
			return rules.Parse("rules.yaml", []byte(q.Files["rules.yaml"]), rules.Config{})
		}
		o.SubjectOf = func(l *tidegate.Limit, key string) []offenders.Part {
			return []offenders.Part{{Name: l.Scope, Value: key, Hashed: secret}}
		}
	})
	d.rules.status.Hash = "dddd4444eeee5555ffff"
	return d, sealer, written
}

func openSlip(t *testing.T, d *desk, text string) Why {
	t.Helper()
	w := d.ask("POST", "/why", `{"slip":"`+text+`"}`)
	var why Why
	if err := json.Unmarshal(w.Body.Bytes(), &why); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return why
}

func TestWhy(t *testing.T) {
	d, sealer, written := whyDesk(t, false)
	is := slip.Slip{
		At: time.Date(2026, 11, 17, 3, 12, 9, 0, time.UTC), Node: "web-2", Rules: "aaaa1111bbbb2222", Rule: "api", Limit: "5/1m0s sliding_log",
		Scope: "user", Key: "42", Capacity: 5, RetryAfter: 8400 * time.Millisecond,
	}
	for range 3 {
		d.charge(t, "GET /", "user", "42")
	}
	w := openSlip(t, d, sealer.Seal(&is))
	const text = "user=42 was refused by the rule api (5/1m0s sliding_log) at 2026-11-17 03:12:09.000 UTC on web-2: 0 of 5 were left, and it needed more. The same request would have passed 8.4s later."
	if w.Text != text {
		t.Errorf("got %s\nwant %s", w.Text, text)
	}
	if w.Set == nil || w.Set.Revision != "7" || w.Set.InForce || w.Gone != "" {
		t.Errorf("set %+v, gone %q", w.Set, w.Gone)
	}
	if w.Rule == nil || w.Rule.Text != "  - name: api\n    per: user\n    limits: 5/minute" || !strings.HasSuffix(w.Rule.Place, "rules.yaml:9:5") || len(w.Rule.Limits) != 1 || !strings.Contains(w.Rule.Limits[0], "5/1m0s") {
		t.Errorf("rule %+v", w.Rule)
	}
	if len(w.Now) != 1 || w.Now[0].Remaining != 47 || w.Now[0].Capacity != 50 {
		t.Errorf("now %+v", w.Now)
	}
	if n := len(written.entries); n != 1 || written.entries[0].Action != "why" || written.entries[0].Result != Done || written.entries[0].What["rule"] != "api" {
		t.Errorf("audit log: %+v", written.entries)
	}

	is.Rules = "0000111122223333"
	if w := openSlip(t, d, sealer.Seal(&is)); !strings.Contains(w.Gone, "0000111122223333") || !strings.Contains(w.Gone, "not in the history") || w.Rule != nil || w.Set != nil || w.Text != text {
		t.Errorf("rules that are gone: %+v", w)
	}
	is.Rules = "dddd4444eeee5555"
	if w := openSlip(t, d, sealer.Seal(&is)); w.Gone != "" || w.Set == nil || !w.Set.InForce || w.Rule == nil || !strings.Contains(w.Rule.Limits[0], "50/1m0s") {
		t.Errorf("rules in force: %+v", w)
	}
	is.Rule, is.Flags, is.Limit = "(ban)", slip.Denied|slip.Never, ""
	if w := openSlip(t, d, sealer.Seal(&is)); !strings.Contains(w.Text, "they were banned") || w.Rule != nil {
		t.Errorf("a ban: %+v", w)
	}
}

// A slip of somebody else is not opened, and that is in the audit log.
func TestWhyForged(t *testing.T) {
	d, _, written := whyDesk(t, false)
	problem(t, d.ask("POST", "/why", `{"slip":"`+slip.NewSealer().Seal(&slip.Slip{Rule: "api"})+`"}`), 422, "slips.key_file")
	problem(t, d.ask("POST", "/why", `{"slip":"tt1_abc"}`), 400, "not a slip")
	problem(t, d.ask("POST", "/why", `{}`), 400, "not a slip")
	problem(t, d.ask("POST", "/why", `{"ticket":"x"}`), 400, "unknown field")
	for _, e := range written.entries {
		if e.Action != "why" || e.Result != Failed {
			t.Errorf("%+v", e)
		}
	}
	if len(written.entries) != 4 {
		t.Errorf("%d entries", len(written.entries))
	}
	problem(t, newDesk(t, rulesNow, nil).ask("POST", "/why", `{"slip":"rs1_abc"}`), 404, "no slips")
}

// What may be a secret is a hash everywhere in the answer, in the audit log and in the log.
func TestWhyHidesSecrets(t *testing.T) {
	d, sealer, written := whyDesk(t, true)
	is := slip.Slip{Rules: "aaaa1111bbbb2222", Rule: "api", Scope: "user", Key: "s3cr3t-v4lue"}
	// The value is replaced by its hash in serve; here it must at least not be explained by name.
	w := openSlip(t, d, sealer.Seal(&is))
	if len(w.Now) != 0 || w.Rule == nil || !strings.HasPrefix(w.Text, "user=#") {
		t.Errorf("%+v", w)
	}
	if as := written.entries[0].What["as"].(map[string]string); !strings.HasPrefix(as["user"], "#") {
		t.Errorf("%+v", as)
	}
}

func TestRuleText(t *testing.T) {
	files := map[string][]byte{"rules.yaml": []byte("a:\n  - name: x\n    b: 1\n\n    c: 2\n  - name: y # last\n"), "other/rules.yaml": nil, "flow.yaml": []byte("rules: [{ name: x }]")}
	f := func(place, want string) {
		t.Helper()
		if got := ruleText(files, place); got != want {
			t.Errorf("%s: %q, want %q", place, got, want)
		}
	}
	f("rules.yaml:2:5", "  - name: x\n    b: 1\n\n    c: 2")
	f("/etc/tidegate/rules.yaml:6:5", "  - name: y # last")
	f("flow.yaml:1:9", "rules: [{ name: x }]")
	f("rules.yaml:99:1", "")
	f("rules.yaml:0:1", "")
	f("rules.yaml", "")
	f("none.yaml:1:1", "")
	for range 20 { // whatever the order of the map
		files := map[string][]byte{"limits.yaml": []byte("- short"), "team/limits.yaml": []byte("- long"), "z/limits.yaml": []byte("- other")}
		for place, want := range map[string]string{"conf/team/limits.yaml:1:1": "- long", "conf/limits.yaml:1:1": "- short", "z/limits.yaml:1:1": "- other"} {
			if got := ruleText(files, place); got != want {
				t.Fatalf("%s: %q, want %q", place, got, want)
			}
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"": "", "redis is away": "Redis is away", "ärger": "Ärger", "東京 is away": "東京 is away", "\xff": "\xff"} {
		if got := sentence(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
