//go:build unix

package serve

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tidegate.dev/tidegate/internal/dev/testdep"
	"tidegate.dev/tidegate/internal/telemetry/auditlog"
)

// rosterLine is that of an operator in admin.tokens.
func rosterLine(name, role, token string) string {
	hash := sha256.Sum256([]byte(token))
	return name + " " + role + " " + hex.EncodeToString(hash[:]) + "\n"
}

// operator asks the admin listener.
type operator struct {
	client *http.Client
	at     string
	header []string // pairs
}

func (o operator) status(t *testing.T, method, path, body string) int {
	t.Helper()
	r, err := http.NewRequest(method, o.at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(o.header); i += 2 {
		r.Header.Set(o.header[i], o.header[i+1])
	}
	res, err := o.client.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// A running server knows its operators by their tokens, their certificates and the word of
// its proxy, and reads the file of tokens again when it changes.
func testOperators(t *testing.T, bin string) {
	const alice, bob = "alice-0123456789abcdef", "bob-0123456789abcdef"
	cert, key := newCertificate(t, "admin")
	ours, theirs := testdep.NewCertificate(t, "ours", nil), testdep.NewCertificate(t, "theirs", nil)
	w := newSandbox(t, bin, "cert.pem", cert, "key.pem", key, "ca.pem", ours.PEM(),
		"operators", rosterLine("alice", "view", alice), "rules.yaml", "version: 1\nrules: [{ name: api, per: ip, limits: 5/minute }]\n",
		"tidegate.yaml", `
listen: { gateway: "127.0.0.1:0", admin: "127.0.0.1:0" }
admin:
  tokens: operators
  tls: { cert: cert.pem, key: key.pem, client_ca: ca.pem, roles: { carol: operate } }
  sso: { header: X-User, from: 127.0.0.1, roles: { dave: rule } }
`)
	s := w.serve("", nil)
	_, at := s.ready()
	bearer := func(token string) operator {
		return operator{device(nil, true), at, []string{"Authorization", "Bearer " + token}}
	}
	f := func(o operator, method, path, body string, want int) {
		t.Helper()
		if got := o.status(t, method, path, body); got != want {
			t.Errorf("%s %s by %v: %d, want %d", method, path, o.header, got, want)
		}
	}
	const reset = `{"as":{"ip":"192.0.2.1"}}`
	f(operator{device(nil, true), at, nil}, "GET", "/healthz", "", 200) // for everybody
	f(operator{device(nil, true), at, nil}, "GET", "/rules", "", 401)
	f(bearer(alice), "GET", "/rules", "", 200)
	f(bearer(alice), "POST", "/keys/reset", reset, 403)
	f(bearer(bob), "GET", "/rules", "", 401)
	for _, http2 := range []bool{false, true} {
		carol, mallory, forged := testdep.NewCertificate(t, "carol", ours).TLS(), testdep.NewCertificate(t, "mallory", ours).TLS(), testdep.NewCertificate(t, "carol", theirs).TLS()
		f(operator{device(&carol, http2), at, nil}, "POST", "/keys/reset", reset, 200)
		f(operator{device(&carol, http2), at, nil}, "POST", "/rules/reload", "{}", 403)
		f(operator{device(&mallory, http2), at, nil}, "GET", "/rules", "", 403)
		f(operator{device(&forged, http2), at, nil}, "GET", "/rules", "", 0) // no connection
		f(operator{device(nil, http2), at, []string{"X-User", "dave"}}, "POST", "/rules/reload", "{}", 200)
		f(operator{device(nil, http2), at, []string{"X-User", "dave", "Origin", "https://attacker.example"}}, "POST", "/rules/reload", "{}", 403)
		f(operator{device(nil, http2), at, []string{"X-User", "eve"}}, "GET", "/rules", "", 403)
	}

	// A bad file leaves what was read before; a good one holds within a second or two.
	w.write("operators", "alice view nonsense\n")
	w.until("the bad file is told of", func() bool {
		f(bearer(alice), "GET", "/rules", "", 200)
		return strings.Contains(s.logText(), "the file of operators could not be read again")
	})
	f(bearer(alice), "GET", "/rules", "", 200)
	w.write("operators", rosterLine("bob", "operate", bob))
	w.until("bob may ask", func() bool { return bearer(bob).status(t, "POST", "/keys/reset", reset) == 200 })
	f(bearer(alice), "GET", "/rules", "", 401)
	w.write("operators", rosterLine("alice", "view", alice))
	s.signal(syscall.SIGHUP) // at once
	w.until("alice may ask", func() bool { return bearer(alice).status(t, "GET", "/rules", "") == 200 })
	if log := s.logText(); strings.Contains(log, alice) || strings.Contains(log, bob) {
		t.Error("a token is in the log")
	}
}

// auditFile returns the entries of a file, the oldest first.
func auditFile(t *testing.T, name string) (all []auditlog.Entry) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e auditlog.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Errorf("%v: %s", err, lines.Text())
		}
		all = append(all, e)
	}
	return all
}

// What operators do, and changes of the rule file, are in the audit log, after a restart, too.
func testAudit(t *testing.T, bin string) {
	const alice = "alice-0123456789abcdef"
	const rule = "version: 1\nrules: [{ name: api, per: ip, limits: %d/minute }]\n"
	w := newSandbox(t, bin, "rules.yaml", fmt.Sprintf(rule, 5), "operators", rosterLine("alice", "operate", alice))
	args := []string{"--listen.gateway=127.0.0.1:0", "--listen.admin=127.0.0.1:0", "--rules=rules.yaml", "--admin.tokens=operators", "--admin.audit=audit.log"}
	file := filepath.Join(w.dir, "audit.log")
	s := w.serve("", nil, args...)
	_, at := s.ready()
	o := operator{once, at, []string{"Authorization", "Bearer " + alice}}
	if got := o.status(t, "POST", "/keys/reset", `{"as":{"ip":"192.0.2.1"},"reason":"ticket 7"}`); got != 200 {
		t.Errorf("answered %d", got)
	}
	count := func(n int) func() bool { return func() bool { return len(auditFile(t, file)) >= n } }
	w.write("rules.yaml", fmt.Sprintf(rule, 6))
	w.until("the change is in the log", count(2))
	w.write("rules.yaml", "version: 1\nrules: [{ nmae: api }]\n")
	w.until("the mistake is in the log", count(3))
	s.signal(os.Interrupt)
	if code := s.end(); code != 0 {
		t.Errorf("exits with %d", code)
	}
	w.write("rules.yaml", fmt.Sprintf(rule, 6))
	s = w.serve("", nil, args...)
	_, at = s.ready()
	o.at = at
	if got := o.status(t, "POST", "/rules/reload", `{}`); got != 403 {
		t.Errorf("answered %d", got)
	}
	all := auditFile(t, file)
	var got strings.Builder
	for _, e := range all {
		fmt.Fprintf(&got, "%s %s %s %s\n", e.Who, e.Action, e.Result, e.Reason)
	}
	if want := "alice reset done ticket 7\n(files) rules done \n(files) rules failed \nalice rules/reload refused \n"; got.String() != want {
		t.Fatalf("got\n%swant\n%s", got.String(), want)
	}
	if from, to := all[1].What["from"], all[1].What["to"]; from == to || from == "" || to == nil || all[2].What["from"] != to || !strings.Contains(all[2].Error, "nmae") {
		t.Errorf("%+v\n%+v", all[1], all[2])
	}
	// The whole story can be asked for.
	_, body := w.get(device(nil, false), at+"/readyz")
	if !strings.Contains(body, "true") {
		t.Error(body)
	}
	r, err := http.NewRequest("GET", at+"/audit?action=rules", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+alice)
	res, err := once.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || strings.Count(string(text), `"action": "rules"`) != 2 {
		t.Errorf("%v: %s", err, text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", err, info.Mode())
	}
}
