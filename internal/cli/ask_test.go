package cli

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidegate.dev/tidegate"
	"tidegate.dev/tidegate/internal/front/checkapi"
	"tidegate.dev/tidegate/internal/front/desk"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

const askRules = `
version: 1
identify: { user: header X-User, name: body.name }
rules:
  - { name: posts, match: POST api.example/posts, per: user, limits: 2/hour }
  - { name: names, match: POST /names, per: name, missing: refuse, limits: 1/hour }
  - { name: soft, match: /soft, per: ip, limits: 1/hour, over: { soft: 100% } }
  - { name: slots, match: /slots, per: ip, concurrency: { slots: 1, lease: 30s } }
  - { name: private, match: /private/, deny: true }
`

// checkServer runs a check listener.
func checkServer(t *testing.T, token string) string {
	t.Helper()
	set, err := rules.Parse("rules.yaml", []byte(askRules), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(checkapi.New(checkapi.Options{
		Desk:  desk.New(tidegate.NewGate(set, memory.New())),
		Token: func() string { return token },
		Known: func(name string) bool { return slices.Contains(set.Identities(), name) },
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAsk(t *testing.T) {
	env := map[string]string{"TIDEGATE_CHECK_SERVER": checkServer(t, "secret"), "TIDEGATE_CHECK_TOKEN": "secret"}
	f := func(code int, want string, args ...string) {
		t.Helper()
		var out, err bytes.Buffer
		e := Env{Stdin: strings.NewReader(`{"method":"POST","url":"/names","body":{"name":"c"}}`), Stdout: &out, Stderr: &err, Getenv: func(name string) string { return env[name] }}
		got := run(t.Context(), e, append([]string{"ask"}, args...))
		if got != code || !strings.Contains(out.String()+err.String(), want) {
			t.Errorf("tidegate ask %q: exit %d, want %d and %q\n%s%s", args, got, code, want, out.String(), err.String())
		}
	}
	posts := []string{"--as", "user=42", "POST", "https://api.example/posts"}
	f(0, "allowed by posts: 2 of 2 left\n", append([]string{"--peek"}, posts...)...)
	f(0, "allowed by posts: 1 of 2 left\n", posts...)
	f(0, `"remaining": 0`, append([]string{"--json"}, posts...)...)
	f(1, "limited by posts: 0 of 2 left, try again in ", posts...)
	f(1, `"decision": "limited"`, append([]string{"--json"}, posts...)...)
	f(0, "allowed by posts: 1 of 2 left\n", "-H", "X-User: 43", "POST", "api.example/posts")
	f(1, "limited by posts: 2 of 2 left, and the cost can never fit\n", "--as", "user=44", "--cost", "9", "POST", "api.example/posts")
	f(0, "allowed\n", "POST", "/posts")
	// A URL within the path or the query is a part of it.
	f(0, "allowed by posts: 1 of 2 left\n", "--as", "user=45", "POST", "api.example/posts?next=https://other.example/home")
	f(0, "allowed by posts: 0 of 2 left\n", "--as", "user=45", "POST", "https://api.example/posts?next=https://other.example/home")
	f(0, "allowed\n", "--as", "user=45", "POST", "/home?next=https://api.example/posts")
	f(1, "denied by private\n", "/private/x?next=https://api.example/")
	f(0, "allowed\n", "https://api.example?next=/private/x")
	f(0, "allowed by names: 0 of 1 left\n", "--body", `{"name":"a"}`, "POST", "/names")
	f(1, "limited by names", "--body", `{"name":"a"}`, "POST", "/names")
	f(0, "allowed by names", "--request", "-")
	f(1, "denied by names\n", "POST", "/names")
	f(0, "allowed by soft", "--ip", "192.0.2.1", "/soft")
	f(0, "allowed by soft: 0 of 1 left, above the limit\n", "--ip", "192.0.2.1", "/soft")
	f(0, "\nticket tt", "--ip", "192.0.2.1", "/slots")
	f(1, "denied by private\n", "/private/x")
	f(1, "denied\nThe path contains . or .. segments.\n", "/a/../private/x")
	f(0, `the rules have no identity "usr"`, "--as", "usr=1", "/")
	f(2, "no request", "--as", "user=42")
	f(2, "give the request once", "--request", "-", "/")
	f(1, "the ip is not an address", "--ip", "here", "/")

	delete(env, "TIDEGATE_CHECK_TOKEN")
	f(1, "needs its token", "/")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(0, "allowed", "--token-file", file, "/")
	env["TIDEGATE_CHECK_TOKEN_FILE"] = file
	f(0, "allowed", "/")
	f(1, "is this its check listener?", "--server", "http://127.0.0.1:1", "/")
	f(2, "not a valid address", "--server", "ftp://x", "/")
}
