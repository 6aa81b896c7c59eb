package cli

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/admin"
	"tidegate.dev/tidegate/internal/lang/describe"
	"tidegate.dev/tidegate/rules/source"
	"tidegate.dev/tidegate/store/memory"
)

// adminServer runs an admin listener with the rules of src; charge counts a request.
func adminServer(t *testing.T, src, token string) (address string, charge func(path, user string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"+src), 0o644); err != nil {
		t.Fatal(err)
	}
	watcher, err := source.Watch(t.Context(), file, source.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	store := memory.Open(memory.Config{Now: func() time.Time { return noon }})
	o := admin.Options{Rules: watcher, Store: store, Log: slog.New(slog.DiscardHandler)}
	if token != "" {
		o.Token = func() string { return token }
	}
	server := httptest.NewServer(admin.New(o))
	t.Cleanup(server.Close)
	gate := tidegate.NewGate(watcher.Live(), store)
	return server.URL, func(path, user string) {
		d := describe.Request{URL: path, As: map[string]string{"user": user}}
		r, err := d.Request()
		if err != nil {
			t.Fatal(err)
		}
		gate.Decide(t.Context(), r)
	}
}

const keysRules = `
identify: { user: header X-User }
rules:
  - { name: api, match: /api/, per: user, limits: 2/hour, block: 24h }
  - { name: search, match: /search, per: user, limits: 1/hour, over: { soft: 100% }, candidate: 1/hour }
  - { name: site, per: everyone, limits: 1000/hour }
`

// keys runs the command and returns what it printed.
func keys(t *testing.T, env map[string]string, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	e := Env{Stdout: &out, Stderr: &err, Getenv: func(name string) string { return env[name] }}
	if code := run(t.Context(), e, append([]string{"keys"}, args...)); code != want {
		t.Errorf("tidegate keys %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, out.String(), err.String())
	}
	return out.String(), err.String()
}

func TestKeys(t *testing.T) {
	server, charge := adminServer(t, keysRules, "")
	env := map[string]string{"TIDEGATE_SERVER": server}
	for range 3 {
		charge("/api/", "42")
		charge("/search", "42")
	}
	f := func(want string, args ...string) {
		t.Helper()
		got, _ := keys(t, env, exitOK, args...)
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("tidegate keys %s:\n%swant\n%s", strings.Join(args, " "), got, strings.TrimLeft(want, "\n"))
		}
	}
	f(`
RULE    COUNTED  LIMIT                           LEFT    NOW
api     user 42  1/24h0m0s sliding_log (blocks)  0 of 1  blocked for 24h0m0s
api     user 42  2/1h0m0s sliding_log            0 of 2  refused for 1h0m0s
search  user 42  1/1h0m0s sliding_log (marks)    0 of 1  marked for 1h0m0s
search  user 42  2/1h0m0s sliding_log            0 of 2  refused for 1h0m0s
search  user 42  1/1h0m0s sliding_log (tries)    0 of 1  would be refused for 1h0m0s
`, "get", "--as", "user=42")
	f(`
RULE  COUNTED   LIMIT                    LEFT         NOW
site  everyone  1000/1h0m0s sub_windows  996 of 1000  passes
`, "get", "--rule", "site")
	f(`
reset 2 counters:
RULE  COUNTED  LIMIT                           LEFT    NOW
api   user 42  1/24h0m0s sliding_log (blocks)  1 of 1  passes
api   user 42  2/1h0m0s sliding_log            2 of 2  passes
`, "reset", "--as", "user=42", "POST", "/api/things")
	charge("/api/", "42")
	out, _ := keys(t, env, exitOK, "get", "--as", "user=42", "--rule", "api", "--json", "/api/")
	var is admin.Keys
	if err := json.Unmarshal([]byte(out), &is); err != nil || len(is.Counters) != 2 || is.Counters[1].Remaining != 1 || is.Counters[1].Key != "42" {
		t.Errorf("%v: %s", err, out)
	}
}

// Nobody is reset where nothing is counted, and a caller is named as people would.
func TestKeysOfNobody(t *testing.T) {
	server, charge := adminServer(t, `
identify: { user: header X-User }
rules:
  - { name: posts, match: [POST /posts, "PUT /posts/{id}"], per: [user, route], limits: 2/hour }
  - { name: search, match: /search, per: user, limits: 9/hour }
`, "")
	env := map[string]string{"TIDEGATE_SERVER": server}
	f := func(code int, want, wantErr string, args ...string) {
		t.Helper()
		out, stderr := keys(t, env, code, args...)
		if strings.TrimSpace(out) != strings.TrimSpace(want) || strings.TrimSpace(stderr) != wantErr {
			t.Errorf("tidegate keys %s:\n%s%swant\n%s\n%s", strings.Join(args, " "), out, stderr, strings.TrimLeft(want, "\n"), wantErr)
		}
	}
	f(exitFound, "", `tidegate keys: nobody was reset: nothing is counted for user 42, route POST /posts; user 42, route PUT /posts/{id}; user 42`, "reset", "--as", "user=42")
	charge("/search", "42")
	f(exitOK, `
reset 1 of 3 counters:
RULE    COUNTED                         LIMIT                 LEFT    NOW
posts   user 42, route POST /posts      2/1h0m0s sliding_log  2 of 2  passes
posts   user 42, route PUT /posts/{id}  2/1h0m0s sliding_log  2 of 2  passes
search  user 42                         9/1h0m0s sliding_log  9 of 9  passes
`, "", "reset", "--as", "user=42")
	f(exitFound, "", "tidegate keys: nobody was reset: nothing is counted for user 42", "reset", "--as", "user=42", "--rule", "search")
	if out, _ := keys(t, env, exitFound, "reset", "--as", "user=42", "--json"); strings.Contains(out, "was_used") || !strings.Contains(out, `"value": "POST /posts"`) {
		t.Errorf("printed %s", out)
	}
	f(exitOK, `
RULE    COUNTED                 LIMIT                 LEFT    NOW
search  user "\x1b[2Ja, \"b\n"  9/1h0m0s sliding_log  9 of 9  passes
`, "", "get", "--rule", "search", "--as", "user=\x1b[2Ja, \"b\n")
	long := strings.Repeat("é", 200)
	out, _ := keys(t, env, exitOK, "get", "--rule", "search", "--as", "user="+long)
	if !strings.Contains(out, "user "+strings.Repeat("é", 60)+"…  ") {
		t.Errorf("a long value: %s", out)
	}
	_, stderr := keys(t, env, exitOK, "get", "--rule", "search", "--as", "user=42", "--as", "usr=1")
	if !strings.Contains(stderr, `the rules have no identity "usr"; did you mean "user"?`) {
		t.Errorf("said %q", stderr)
	}
}

// What the store cannot say, and what one instance counts alone, is marked.
func TestKeysAreMarked(t *testing.T) {
	answer := `{"counters":[
{"rule":"api","role":"decides","limit":"2/1h0m0s sliding_log","key":"42","subject":[{"name":"user","value":"42"}],"ok":true,"remaining":1,"capacity":2,"local":true},
{"rule":"plan","role":"decides","limit":"9/1h0m0s sliding_log","key":"@","subject":[{"name":"ip","value":"@"}],"unknown":"connection refused"}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
	t.Cleanup(server.Close)
	out, stderr := keys(t, map[string]string{"TIDEGATE_SERVER": server.URL}, exitFound, "get", "--as", "user=42")
	want := `RULE  COUNTED     LIMIT                 LEFT    NOW
api   user 42     2/1h0m0s sliding_log  1 of 2  passes (local)
plan  ip unknown  9/1h0m0s sliding_log  ?       unknown
`
	if out != want || !strings.Contains(stderr, "marked local") || !strings.Contains(stderr, "marked unknown: connection refused") {
		t.Errorf("got\n%s%swant\n%s", out, stderr, want)
	}
}

func TestKeysThatCannotBeHad(t *testing.T) {
	server, _ := adminServer(t, keysRules, "")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	away := httptest.NewServer(http.RedirectHandler(server, http.StatusFound))
	t.Cleanup(away.Close)
	f := func(server string, code int, part string, args ...string) {
		t.Helper()
		out, err := keys(t, map[string]string{"TIDEGATE_SERVER": server}, code, args...)
		if !strings.Contains(err, part) || out != "" {
			t.Errorf("tidegate keys %s: %q, %q; want %q", strings.Join(args, " "), out, err, part)
		}
	}
	f(server, exitUsage, "say what to do")
	f(server, exitUsage, "say what to do", "delete", "--as", "user=42")
	f(server, exitUsage, "say whose counters", "get")
	f(server, exitUsage, "say whose counters", "reset", "/api/")
	f(server, exitUsage, "user=42", "get", "--as", "42")
	f(server, exitUsage, `also "now"`, "get", "--as", "user=42", "GET", "/api/", "now")
	f("ftp://example.com", exitUsage, "is not a valid address", "get", "--as", "user=42")
	f(server, exitUsage, "no such file", "get", "--as", "user=42", "--token-file", "/no/such/file")
	f(server, exitFound, "did you mean api?", "get", "--as", "user=42", "--rule", "apo")
	f(server, exitFound, "no rule counts by that", "get", "--as", "color=blue")
	f("127.0.0.1:1", exitFound, "is tidegate serve running", "get", "--as", "user=42")
	f(other.URL, exitFound, "404", "get", "--as", "user=42")
	f(away.URL, exitFound, "302", "get", "--as", "user=42")
}

func TestKeysToken(t *testing.T) {
	const token = "correct-horse"
	server, _ := adminServer(t, keysRules, token)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(code int, env map[string]string, args ...string) {
		t.Helper()
		_, stderr := keys(t, env, code, append([]string{"get", "--server", server, "--rule", "site"}, args...)...)
		if strings.Contains(stderr, token) || code != exitOK && !strings.Contains(stderr, "token") {
			t.Errorf("said %q", stderr)
		}
	}
	f(exitFound, nil)
	f(exitFound, map[string]string{"TIDEGATE_TOKEN": "wrong"})
	f(exitOK, map[string]string{"TIDEGATE_TOKEN": token})
	f(exitOK, map[string]string{"TIDEGATE_TOKEN_FILE": file})
	f(exitOK, map[string]string{"TIDEGATE_TOKEN": "wrong"}, "--token-file", file)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(exitUsage, nil, "--token-file", empty)
}

// A server that speaks TLS is believed by those who vouch for it, and by nobody else.
func TestKeysOverTLS(t *testing.T) {
	const token = "0123456789abcdef"
	plain, _ := adminServer(t, keysRules, token)
	at, err := url.Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(at))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	dir := t.TempDir()
	ca, rubbish := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "rubbish")
	for file, text := range map[string][]byte{
		ca:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		rubbish: []byte("nothing"),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"TIDEGATE_SERVER": server.URL, "TIDEGATE_TOKEN": token}
	ask := []string{"get", "--rule", "site"}
	if _, why := keys(t, env, exitFound, ask...); !strings.Contains(why, "certificate") {
		t.Errorf("without: %s", why)
	}
	if out, _ := keys(t, env, exitOK, append(ask, "--ca-file", ca)...); !strings.Contains(out, "1000 of 1000") {
		t.Errorf("by a flag: %s", out)
	}
	if _, why := keys(t, env, exitUsage, append(ask, "--ca-file", rubbish)...); !strings.Contains(why, "has none in PEM") {
		t.Errorf("rubbish: %s", why)
	}
	env["TIDEGATE_CA_FILE"] = ca
	keys(t, env, exitOK, ask...)
}
