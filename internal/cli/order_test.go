package cli

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate/internal/chain/board"
	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
	"tidegate.dev/tidegate/internal/telemetry/offenders"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

// ruled are rules without files.
type ruled struct{ live *rules.Live }

func (r ruled) Live() *rules.Live     { return r.live }
func (r ruled) Status() source.Status { return source.Status{} }

// operated is an admin listener with everything that operators have.
func operated(t *testing.T, change func(*admin.Options)) admin.Options {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte("version: 1\nidentify: { user: header X-User }\nrules: [{ name: api, per: user, limits: 3/hour }]\n"), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	live := rules.NewLive(set)
	b, err := board.Open(board.Options{Self: board.Node{ID: "1", Name: "web-1"}, OnChange: func(all []board.Record) {
		var measures []rules.Measure
		for _, r := range all {
			var m rules.Measure
			if err := json.Unmarshal(r.Body, &m); err != nil {
				t.Error(err)
			}
			measures = append(measures, m)
		}
		live.SetMeasures(measures)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	log, err := auditlog.Open(auditlog.Options{Node: "web-1"})
	if err != nil {
		t.Fatal(err)
	}
	who := offenders.New(offenders.Options{Node: "web-1"})
	t.Cleanup(who.Close)
	b.Answer(admin.OffendersTopic, who.Answer)
	own := func() admin.Series {
		return admin.Series{Nodes: []string{"web-1"}, From: time.Now(), Step: 1, Lines: []admin.Line{{Rule: "api", Outcome: "refused", Counts: []uint32{0, 5}}, {Rule: "api", Outcome: "ok", Counts: []uint32{100, 20}}}}
	}
	b.Answer(admin.SeriesTopic, func(question []byte) []byte { return admin.AnswerSeries(question, own()) })
	o := admin.Options{
		Log: slog.New(slog.DiscardHandler), Rules: ruled{live}, Store: memory.New(), Board: b, Audit: log, Offenders: who.Snapshot,
		Series: own,
	}
	if change != nil {
		change(&o)
	}
	return o
}

// operate runs a command at a server.
func operate(t *testing.T, url string, args ...string) (code int, out, problems string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e := Env{Stdout: &stdout, Stderr: &stderr, Getenv: func(name string) string {
		if name == "TIDEGATE_SERVER" {
			return url
		}
		return ""
	}}
	code = run(t.Context(), e, args)
	return code, stdout.String(), stderr.String()
}

func TestOperate(t *testing.T) {
	server := httptest.NewServer(admin.New(operated(t, nil)))
	defer server.Close()
	f := func(code int, line, want string) {
		t.Helper()
		got, out, problems := operate(t, server.URL, strings.Split(line, " ")...)
		if got != code || !strings.Contains(out+problems, want) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", line, got, code, want, out, problems)
		}
	}
	// What cannot be meant.
	f(exitUsage, "ban", "say who")
	f(exitUsage, "ban user=42", "say why")
	f(exitUsage, "ban 42 --reason x", "does not say who")
	f(exitUsage, "ban user=42 user=43 --reason x", "there is user=42 already, and nobody is both")
	f(exitUsage, "ban user=42 --as user=43 --reason x", "nobody is both")
	f(exitUsage, "unban user=42 user=43", "nobody is both")
	f(exitUsage, "keys reset --as user=42 --as user=43", "nobody is both")
	f(exitUsage, "keys top --as user=42", "keys get --as")
	f(exitUsage, "measures --rule api", "use --search")
	f(exitUsage, "measures --preview", "use --search")
	f(exitUsage, "override user=42 --reason x", "--rule RULE")
	f(exitUsage, "override user=42 --rule api --reason x", "--limits 5000/minute")
	f(exitUsage, "ban user=42 --reason x --until tomorrow", "is a time such as")
	f(exitUsage, "unban", "say which")
	f(exitUsage, "unban a b", "two IDs")
	f(exitUsage, "measures all", "no argument but end")
	f(exitUsage, "measures end", "say which")
	f(exitUsage, "audit me", "no arguments")
	f(exitUsage, "top me", "no arguments")
	f(exitUsage, "top --every 1ms", "100ms")
	f(exitUsage, "keys top acme", "--search")
	f(exitUsage, "keys refund --as user=42", "--events 50")
	f(exitUsage, "keys", "top, get, reset or refund")
	f(exitUsage, "keys get --as user=42 --cert-file x", "go together")
	f(exitUsage, "keys get --as user=42 --cert-file x --key-file y", "the certificate")
	// What the server does not do.
	f(exitFound, "ban usr=42 --reason x", "user")
	f(exitFound, "ban user=42 --reason x --for 2w", "7d")
	f(exitFound, "override user=42 --rule apo --limits 5/hour --reason x", "api")
	f(exitFound, "unban user=42", "no such ban or override")
	f(exitFound, "keys top --by size", "refused")
	f(exitFound, "keys refund --as user=42 --events 5", "nothing was given back")
	// What it does.
	f(exitOK, "measures", "no bans or overrides are in force")
	f(exitOK, "ban user=42 --for 7d --reason x --preview", "would order: ban ban-")
	f(exitOK, "measures", "no bans or overrides are in force")
	f(exitOK, "ban user=42 --for 7d --reason x", "holds on 1 of 1 instances, until this process ends")
	f(exitOK, "override everyone --rule api --limits 5/hour,100/day --reason y", "of everyone for rule api: 5/hour, 100/day, by local, until it is ended (y)")
	f(exitOK, "measures --search everyone", "everyone")
	f(exitOK, "measures --json", `"kind": "ban"`)
	f(exitOK, "keys get --as user=42", "ban ban-")
	f(exitOK, "top --once", "api   6")
	f(exitOK, "unban user=42 --preview", "would end: ban")
	f(exitOK, "unban user=42", "ended: ban")
	f(exitOK, "measures end everyone --rule api", "ended: override")
	f(exitOK, "override user=7 --rule api --limits unlimited --reason z", "unlimited")
	f(exitOK, "keys get --as user=7", "override override-")
	f(exitOK, "keys get --as user=7 --json", `"counters": []`)
	f(exitFound, "keys reset --as user=7", "nothing to reset")
	f(exitFound, "keys reset --as user=7 --json", `"counters": []`)
	f(exitFound, "keys refund --as user=7 --events 5", "nothing to refund")
	f(exitOK, "measures end user=7", "ended: override")
	f(exitOK, "keys top", "nobody is listed")
	f(exitOK, "audit --action ban", "local")
	f(exitOK, "audit --json --n 1", `"action": "end"`)
}

// Limits are written as in a rule file, also with commas in them.
func TestLimitsOfAnOverride(t *testing.T) {
	server := httptest.NewServer(admin.New(operated(t, nil)))
	defer server.Close()
	f := func(want string, limits ...string) {
		t.Helper()
		args := []string{"override", "user=42", "--rule", "api", "--reason", "x", "--preview"}
		for _, text := range limits {
			args = append(args, "--limits", text)
		}
		if code, out, problems := operate(t, server.URL, args...); code != exitOK || !strings.Contains(out, "for rule api: "+want+", by local") {
			t.Errorf("%q: exit %d\n%s%s", limits, code, out, problems)
		}
	}
	const bucket = "{ rate: 10/hour, algorithm: token_bucket, burst: 20 }"
	f("5/hour", "5/hour")
	f("5/hour, 100/day", "5/hour,100/day")
	f("5/hour, 100/day", " 5/hour , 100/day ")
	f("5/hour, 100/day", "5/hour", "100/day")
	f(bucket, bucket)
	f(bucket+", 100/day", bucket+", 100/day")
	f("100/day, "+bucket, "100/day,"+bucket)
	f("100/day, "+bucket, "100/day", bucket)
	for _, wrong := range []string{"", ",", "5/hour,", "{", "}", "{ rate: 10/hour", "},{"} {
		if code, out, problems := operate(t, server.URL, "override", "user=42", "--rule", "api", "--reason", "x", "--limits", wrong); code != exitFound || out != "" || !strings.Contains(problems, "cannot be ordered") {
			t.Errorf("%q: exit %d\n%s%s", wrong, code, out, problems)
		}
	}
}

// Where lists found no room in the answers, that is said.
func TestTopSaysWhatIsLeftOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(offenders.Report{Nodes: []string{"web-1"}, LeftOut: 3})
	}))
	defer server.Close()
	if _, out, _ := operate(t, server.URL, "keys", "top"); !strings.Contains(out, "3 lists had no room in the answers") {
		t.Errorf("printed %s", out)
	}
}

// Nothing that a server says controls the terminal.
func TestOperateWithStrangers(t *testing.T) {
	const evil = "a\x1b[2J\r\n\tb\u202e\u009b\x00"
	m := rules.Measure{ID: evil, Kind: rules.MeasureKind("ban"), As: map[string]string{evil: evil}, Rule: evil, Limits: []string{evil}, Reason: evil, By: evil}
	counter := admin.Counter{Rule: evil, Limit: evil, Subject: []rules.SubjectPart{{Name: "user", Value: evil}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		switch r.URL.Path {
		case "/measures":
			if v = (admin.Measures{Measures: []admin.Ordered{{Measure: m, Problem: evil}}}); r.Method == http.MethodPost {
				v = admin.Effect{Measure: m, Replaces: &m, Holds: evil, Preview: true, Counters: []admin.Counter{counter}}
			}
		case "/measures/end":
			v = admin.Effect{Measure: m, Holds: evil}
		case "/offenders":
			v = offenders.Report{Nodes: []string{evil}, Missing: []string{evil}, Lists: []offenders.List{{Rule: evil, By: offenders.By(evil), Entries: []offenders.Entry{{Subject: []offenders.Part{{Name: evil, Value: evil}}, Limit: evil}}}}}
		case "/series":
			v = admin.Series{Nodes: []string{evil}, Missing: []string{evil}, Step: 1, Lines: []admin.Line{{Rule: evil, Outcome: evil, Counts: []uint32{1}}}}
		case "/audit":
			v = admin.AuditPage{Incomplete: evil, Entries: []auditlog.Entry{{Who: evil, Action: evil, Result: evil, Reason: evil, Node: evil, Error: evil, What: map[string]any{evil: evil, "as": map[string]string{evil: evil}, "x": []string{evil}}}}}
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	defer server.Close()
	for _, line := range []string{"measures", "ban user=42 --reason x", "unban user=42", "keys top", "audit", "top --once"} {
		_, out, problems := operate(t, server.URL, strings.Split(line, " ")...)
		if strings.ContainsFunc(out+problems, func(r rune) bool { return r != '\n' && graphic(r) != r }) {
			t.Errorf("%s printed %q", line, out+problems)
		}
		if out == "" {
			t.Errorf("%s printed nothing: %s", line, problems)
		}
	}
}

// An operator is known by a certificate.
func TestOperateByCertificate(t *testing.T) {
	own := testdep.NewCertificate(t, "alice", nil)
	server := httptest.NewUnstartedServer(admin.New(operated(t, func(o *admin.Options) { o.Certificates = map[string]admin.Role{"alice": admin.Operate} })))
	server.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: own.Pool()}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	who := []string{"--ca-file", ca}
	if code, _, problems := operate(t, server.URL, append([]string{"ban", "user=42", "--reason", "x"}, who...)...); code != exitFound || !strings.Contains(problems, "client certificate") {
		t.Errorf("without a certificate: %d %s", code, problems)
	}
	cert, key := own.Files(t, dir)
	who = append(who, "--cert-file", cert, "--key-file", key)
	if code, out, problems := operate(t, server.URL, append([]string{"ban", "user=42", "--reason", "x"}, who...)...); code != exitOK || !strings.Contains(out, "by alice") {
		t.Errorf("with it: %d %s%s", code, out, problems)
	}
	if code, out, _ := operate(t, server.URL, append([]string{"audit"}, who...)...); code != exitOK || !strings.Contains(out, fmt.Sprintf("%s  ban", "alice")) {
		t.Errorf("the audit log: %d %s", code, out)
	}
}
