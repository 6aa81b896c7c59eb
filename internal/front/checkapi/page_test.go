package checkapi

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

var asksOnPage = regexp.MustCompile(`\$ curl -s http://127\.0\.0\.1:\d+(/v1/\w+) -d '(.*)'\n(\{.*\})\n`)

// The examples of docs/check-api.md are questions that are understood, and answers as the
// API gives them.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/check-api.md")
	if err != nil {
		t.Fatal(err)
	}
	found := asksOnPage.FindAllStringSubmatch(string(page), -1)
	if len(found) < 4 {
		t.Fatalf("there are %d examples", len(found))
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, pageRules, nil)
		ticket := ""
		for _, m := range found {
			target, question, want := m[1], strings.ReplaceAll(m[2], "tt1_…", ticket), m[3]
			got := ask(t, s, "POST", target, question)
			var is, shown map[string]any
			if json.Unmarshal(got.Body.Bytes(), &is) != nil || json.Unmarshal([]byte(want), &shown) != nil || got.Code != 200 {
				t.Fatalf("%s %s: %d %s", target, question, got.Code, got.Body)
			}
			if text, ok := is["ticket"].(string); ok && strings.HasPrefix(text, "tt1_") {
				ticket, is["ticket"] = text, "tt1_…"
			}
			if target == "/v1/usage" { // how much is used depends on what was asked before
				is, shown = keysOf(is), keysOf(shown)
			}
			if !reflect.DeepEqual(is, shown) {
				t.Errorf("%s %s: %v, the page shows %v", target, question, is, shown)
			}
		}
	})
}

// keysOf has the names of the first limit in place of its values.
func keysOf(usage map[string]any) map[string]any {
	names := map[string]any{}
	for name := range usage["limits"].([]any)[0].(map[string]any) {
		names[name] = true
	}
	return names
}

const pageRules = `
identify: { user: client header X-User }
rules:
  - { name: posts, match: POST /posts, per: user, limits: 10/hour }
  - { name: login, match: POST /login, per: ip, limits: 5/15m, count: { status: 401 }, block: 15m }
  - { name: tokens, match: POST /v1/chat, per: user, limits: 100/hour }
`
