package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidegate.dev/tidegate/client"
	"tidegate.dev/tidegate/rules"
	"tidegate.dev/tidegate/store/memory"
)

// Calls are held to rules by host, path, headers and bodies, and to others once the rules have
// changed.
func TestProviderRules(t *testing.T) {
	load := func(text string) *rules.Set {
		t.Helper()
		file := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := rules.Load(file, rules.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"usage":{"total_tokens":10},"got":"`+strings.ReplaceAll(string(body), `"`, "")+`"}`)
	}))
	defer server.Close()
	live := rules.NewLive(load(`
version: 1
identify: { account: header X-Account }
rules:
  - { name: search, match: GET /search, per: account, limits: 2/day }
  - name: chat
    match: POST /chat
    per: everyone
    limits: 100/day
    cost: { reserve: body.max_tokens, else: 1, max: 1000, settle: response.body.usage.total_tokens }
`))
	p, err := client.NewProvider(client.ProviderOptions{Name: "api", Store: memory.New(), Rules: live})
	if err != nil {
		t.Fatal(err)
	}
	api := &http.Client{Transport: p.Transport()}
	call := func(method, path, account, body string) error {
		t.Helper()
		req, err := http.NewRequestWithContext(context.Background(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Account", account)
		req.Header.Set("Content-Type", "application/json")
		res, err := api.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if want := strings.ReplaceAll(body, `"`, ""); !strings.Contains(string(text), `"got":"`+want+`"`) {
			t.Errorf("the server got %s of %s", text, body)
		}
		return err
	}
	pass := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	refuse := func(err error) {
		t.Helper()
		if !errors.Is(err, client.ErrLimit) {
			t.Errorf("%v, want that a limit is used up", err)
		}
	}
	for _, account := range []string{"a", "b"} {
		pass(call("GET", "/search", account, ""))
		pass(call("GET", "/search", account, ""))
		refuse(call("GET", "/search", account, ""))
	}
	pass(call("GET", "/other", "a", ""))
	pass(call("POST", "/chat", "a", `{"max_tokens":90}`)) // and used 10
	pass(call("POST", "/chat", "a", `{"max_tokens":90}`))
	refuse(call("POST", "/chat", "a", `{"max_tokens":90}`)) // 80 are left
	pass(call("POST", "/chat", "a", `{"max_tokens":80}`))
	refuse(call("POST", "/chat", "a", `{"max_tokens":101}`)) // never
	live.Swap(load(`
version: 1
identify: { account: header X-Account }
rules:
  - { name: search, match: GET /search, per: account, limits: 3/day }
`))
	pass(call("GET", "/search", "a", ""))
	refuse(call("GET", "/search", "a", ""))
}
